import { refusalOf, type WebMQError } from 'webmq-client/protocol'
import { RequestRefusal } from '../../../doors/http/api/read-call.js'
import type { StreamFold } from '../fold.js'
import { bytesOf } from '../fold-bytes.js'
import { endMsOf, type StreamConfig, sharedConfigOf } from '../shared-config.js'

/** A stream as clients of Durable Streams see it: bytes that are only added to. */
export interface StreamView {
  readonly id: string
  readonly config: StreamConfig
  readonly isJson: boolean
  /** Whether event streams carry it as text. */
  readonly isText: boolean
  /** Its length in bytes, and their CRC-32. */
  readonly end: { readonly at: number; readonly checksum: number }
  /** All of it; JSON values have a newline behind each. Shared: nobody may change it. */
  readonly bytes: Buffer
  readonly isClosed: boolean
  /** How it has ended, if not by its writer's will. */
  readonly defect: 'fail' | 'stop' | 'lost' | undefined
}

export type StreamPhase = 'none' | 'pending' | 'expired' | 'present'

const PENDING_SEQUENCE = 0

/** Media type without its parameters. */
export function essenceOf(contentType: string): string {
  return (contentType.split(';')[0] ?? '').trim().toLowerCase()
}

export function phaseOf(fold: StreamFold, nowMs: number): StreamPhase {
  if (fold.stream === undefined || fold.status === 'delete') return 'none'
  if (configOf(fold).isPending === true && fold.sequence <= PENDING_SEQUENCE) return 'pending'
  return nowMs < endMsOf(fold) ? 'present' : 'expired'
}

/** @throws {WebMQError} 404: there is none; 410: the log does not have all of it. */
export function viewOf(fold: StreamFold, nowMs: number): StreamView {
  if (phaseOf(fold, nowMs) !== 'present') throw notFound()
  if (fold.isCut) throw gone('its beginning is missing; DELETE it to begin another one')
  const { stream = '', status, shared } = fold
  const config = configOf(fold)
  const essence = essenceOf(config.contentType)
  return {
    id: stream,
    config,
    isJson: shared !== undefined && essence === 'application/json',
    isText: essence.startsWith('text/') || essence === 'application/json',
    // To write, nobody needs the bytes.
    end: shared === undefined ? bytesOf(fold) : { at: fold.byteCount, checksum: shared.checksum },
    get bytes() {
      return bytesOf(fold).bytes
    },
    isClosed: !fold.isActive,
    defect: status === 'fail' || status === 'stop' || status === 'lost' ? status : undefined,
  }
}

/** @returns `undefined` where {@link viewOf} throws. */
export function presentOf(fold: StreamFold): StreamView | undefined {
  try {
    return viewOf(fold, Date.now())
  } catch {
    return undefined
  }
}

export function notFound(): WebMQError {
  return refusalOf('E_STREAM_NOT_FOUND')
}

export function gone(detail: string): RequestRefusal {
  return new RequestRefusal(detail, 410, 'E_STREAM_GONE')
}

/** Streams of WebMQ's own writers have none. */
function configOf(fold: StreamFold): StreamConfig {
  if (fold.shared !== undefined) return sharedConfigOf(fold)
  const isBinary = typeof fold.after(fold.length - 1) === 'object'
  return { contentType: isBinary ? 'application/octet-stream' : 'text/plain; charset=utf-8' }
}
