import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { RequestRefusal } from '../../../doors/http/api/read-call.js'
import type { StreamConfig } from '../shared-config.js'
import { MAX_SEQ_BYTES, type Producer } from '../shared-state.js'
import { headerOf } from './call.js'
import { essenceOf } from './view.js'

/** What a writer says of an append, beside its bytes. */
export interface AppendHead {
  readonly contentType: string | undefined
  /** The stream ends with it. */
  readonly isClosed: boolean
  readonly producer: Producer | undefined
  readonly streamSeq: string | undefined
}

const MAX_TYPE_CHARS = 127
const MAX_NUMBER_CHARS = 20
const MAX_TIME_CHARS = 40
/** They are noted with each message, in few bytes. */
const MAX_SEQ_CHARS = 96
const MAX_ID_CHARS = 1_024
const ID_CHARS = 22
const CONTENT_TYPE = /^[\w!#$&^.+-]+\/[\w!#$&^.+*-]+ *(;.*)?$/
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i
const FORKS = ['stream-fork-offset', 'stream-fork-sub-offset']

/** Reads the head of a PUT. @throws {RequestRefusal} 400; 501 for a fork. */
export function configOf(request: IncomingMessage): { readonly config: StreamConfig; readonly isClosed: boolean } {
  if (request.headers['stream-forked-from'] !== undefined)
    throw new RequestRefusal('streams have no forks here', 501, 'E_UNSUPPORTED')
  if (FORKS.some((name) => request.headers[name] !== undefined)) throw invalid('Stream-Forked-From is missing')
  const contentType = headerOf(request, 'content-type', MAX_TYPE_CHARS) ?? 'application/octet-stream'
  if (!CONTENT_TYPE.test(contentType)) throw invalid('the header Content-Type is none')
  const ttl = headerOf(request, 'stream-ttl', MAX_NUMBER_CHARS)
  const expiresAt = headerOf(request, 'stream-expires-at', MAX_TIME_CHARS)
  if (ttl !== undefined && expiresAt !== undefined) throw invalid('Stream-TTL excludes Stream-Expires-At')
  if (expiresAt !== undefined && (!TIME.test(expiresAt) || Number.isNaN(Date.parse(expiresAt))))
    throw invalid('Stream-Expires-At is no time of RFC 3339')
  return {
    config: {
      contentType,
      ...(ttl === undefined ? undefined : { ttlSeconds: numberOf('Stream-TTL', ttl, 1) }),
      ...(expiresAt === undefined ? undefined : { expiresAt }),
    },
    isClosed: isClosing(request),
  }
}

/** Refuses a stream that would be over when it begins. @throws {RequestRefusal} 400. */
export function assertAhead({ expiresAt }: StreamConfig, nowMs: number): void {
  if (expiresAt !== undefined && Date.parse(expiresAt) <= nowMs) throw invalid('Stream-Expires-At is in the past')
}

/** Whether a PUT with the one finds what another with the other has made. */
export function isSameConfig(one: StreamConfig, other: StreamConfig): boolean {
  const timeOf = ({ expiresAt = '' }: StreamConfig) => Date.parse(expiresAt) || undefined
  return (
    essenceOf(one.contentType) === essenceOf(other.contentType) &&
    one.ttlSeconds === other.ttlSeconds &&
    timeOf(one) === timeOf(other)
  )
}

/** Reads the head of a POST. @throws {RequestRefusal} 400. */
export function appendHeadOf(request: IncomingMessage): AppendHead {
  const id = headerOf(request, 'producer-id', MAX_ID_CHARS)
  const epoch = headerOf(request, 'producer-epoch', MAX_NUMBER_CHARS)
  const sequence = headerOf(request, 'producer-seq', MAX_NUMBER_CHARS)
  const given = [id, epoch, sequence].filter((text) => text !== undefined)
  if (given.length > 0 && (given.length < 3 || id === ''))
    throw invalid('Producer-Id, Producer-Epoch and Producer-Seq go together')
  const streamSeq = headerOf(request, 'stream-seq', MAX_SEQ_CHARS)
  if (streamSeq !== undefined && encodeURIComponent(streamSeq).length > MAX_SEQ_BYTES)
    throw invalid(`Stream-Seq takes more than ${MAX_SEQ_BYTES} bytes when it is percent-encoded`)
  return {
    contentType: headerOf(request, 'content-type', MAX_TYPE_CHARS),
    isClosed: isClosing(request),
    producer:
      id === undefined || epoch === undefined || sequence === undefined
        ? undefined
        : {
            id: createHash('sha256').update(id).digest('base64url').slice(0, ID_CHARS),
            epoch: numberOf('Producer-Epoch', epoch),
            sequence: numberOf('Producer-Seq', sequence),
          },
    streamSeq,
  }
}

function isClosing({ headers }: IncomingMessage): boolean {
  return String(headers['stream-closed']).toLowerCase() === 'true'
}

function numberOf(name: string, text: string, least = 0): number {
  const number = /^(0|[1-9]\d*)$/.test(text) ? Number(text) : Number.NaN
  if (!Number.isSafeInteger(number) || number < least) throw invalid(`${name} is no whole number from ${least} on`)
  return number
}

function invalid(detail: string): RequestRefusal {
  return new RequestRefusal(detail, 400)
}
