import type { ErrorCode } from '../../protocol/errors.js'
import type { WirePayload } from '../../protocol/messages.js'
import {
  formatStreamPlace,
  type StreamKind,
  type StreamPlace,
  type StreamStatus,
  type StreamSummary,
} from '../../protocol/streams.js'

/** A message of a stream, as its writer sends it, or as its server ends it. */
export type StreamMessage = Pick<StreamPlace, 'stream' | 'sequence'> & {
  readonly key: string
  readonly kind: StreamKind
  readonly payload: WirePayload
}

/** The last stream of a key. */
interface TestStream {
  readonly id: string
  sequence: number
  status: StreamStatus
  meta: unknown
  result: unknown
  pieces: WirePayload[]
  position: string | undefined
}

/** The streams of a test server: the last one of each key, as all messages of the log fold into it. */
export class TestStreams {
  readonly #byKey = new Map<string, TestStream>()

  /** Why the server refuses a message, `duplicate`: it was there before, or `undefined`: take it. */
  check({ key, stream, sequence, kind }: StreamMessage): ErrorCode | 'duplicate' | undefined {
    const now = this.#byKey.get(key)
    if (kind === 'start') {
      if (now?.id === stream) return 'duplicate'
      return now?.status === 'active' ? 'E_STREAM_BUSY' : undefined
    }
    if (now?.id !== stream) return 'E_STREAM_ENDED' as ErrorCode
    if (kind === 'beat') return now.status === 'active' ? undefined : 'E_STREAM_ENDED'
    if (sequence <= now.sequence) return now.status === 'lost' ? 'E_STREAM_ENDED' : 'duplicate'
    if (now.status !== 'active') return 'E_STREAM_ENDED' as ErrorCode
    return sequence > now.sequence + 1 ? 'E_STREAM_SEQUENCE' : undefined
  }

  /** Takes a message that {@link check} lets pass. */
  take({ key, stream: id, sequence, kind, payload }: StreamMessage, position: string | undefined): void {
    const json = typeof payload === 'string' && payload ? JSON.parse(payload) : undefined
    const start: TestStream = { id, sequence, status: 'active', meta: json, result: undefined, pieces: [], position }
    const stream = kind === 'start' ? start : this.#byKey.get(key)
    if (!stream) return
    stream.sequence = sequence
    stream.position = position
    if (kind === 'append') stream.pieces.push(payload)
    else if (kind !== 'start') Object.assign(stream, { status: kind, result: json })
    this.#byKey.set(key, stream)
  }

  /** What `read` answers, and the pieces that follow. */
  read(key: string): {
    readonly summary: StreamSummary
    readonly pieces: readonly WirePayload[]
    readonly place: string
  } {
    const stream = this.#byKey.get(key)
    if (!stream) return { summary: {}, pieces: [], place: '' }
    const { id, sequence, status, meta, result, pieces } = stream
    return {
      summary: { stream: id, sequence, status, meta, result },
      pieces: pieces.every((piece) => typeof piece === 'string') && pieces.length > 0 ? [rolledUp(pieces)] : pieces,
      place: formatStreamPlace({ stream: id, sequence, kind: 'text' }),
    }
  }

  /** The stream that is being written; its next message. */
  active(key: string): Pick<StreamMessage, 'stream' | 'sequence'> | undefined {
    const stream = this.#byKey.get(key)
    return stream?.status === 'active' ? { stream: stream.id, sequence: stream.sequence + 1 } : undefined
  }

  /** Forgets everything, like a log that was replaced. */
  clear(): void {
    this.#byKey.clear()
  }
}

function rolledUp(pieces: readonly WirePayload[]): string {
  return JSON.stringify(pieces.map((piece) => JSON.parse(piece as string)).join(''))
}
