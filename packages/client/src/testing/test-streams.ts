import type { ErrorCode } from '../protocol/errors.js'
import type { WirePayload } from '../protocol/messages.js'

/** A message of a stream, as a client sends it. */
export interface StreamMessage {
  readonly key: string
  readonly of: string
  readonly n: number
  readonly kind: string
  readonly payload: WirePayload
}

/** The last stream of a key. */
interface TestStream {
  readonly id: string
  n: number
  status: string
  meta: unknown
  result: unknown
  pieces: WirePayload[]
  position: string | undefined
}

/** The streams of a test server: the last one of each key, as all messages of the log fold into it. */
export class TestStreams {
  readonly #byKey = new Map<string, TestStream>()

  /** Why the server refuses a message, `duplicate`: it was there before, or `undefined`: take it. */
  check({ key, of, n, kind }: StreamMessage): ErrorCode | 'duplicate' | undefined {
    const now = this.#byKey.get(key)
    if (kind === 'start') {
      if (now?.id === of) return 'duplicate'
      return now?.status === 'active' ? ('E_STREAM_BUSY' as ErrorCode) : undefined
    }
    if (now?.id !== of) return 'E_STREAM_ENDED' as ErrorCode
    if (kind === 'beat') return now.status === 'active' ? undefined : ('E_STREAM_ENDED' as ErrorCode)
    if (n <= now.n) return now.status === 'lost' ? ('E_STREAM_ENDED' as ErrorCode) : 'duplicate'
    if (now.status !== 'active') return 'E_STREAM_ENDED' as ErrorCode
    return n > now.n + 1 ? ('E_STREAM_SEQUENCE' as ErrorCode) : undefined
  }

  /** Takes a message that {@link check} lets pass. */
  take({ key, of, n, kind, payload }: StreamMessage, position: string | undefined): void {
    const json = typeof payload === 'string' && payload ? JSON.parse(payload) : undefined
    const start: TestStream = { id: of, n, status: 'active', meta: json, result: undefined, pieces: [], position }
    const stream = kind === 'start' ? start : this.#byKey.get(key)
    if (!stream) return
    stream.n = n
    stream.position = position
    if (kind === 'append') stream.pieces.push(payload)
    else if (kind !== 'start') Object.assign(stream, { status: kind, result: json })
    this.#byKey.set(key, stream)
  }

  /** What `read` answers, and the pieces that follow. */
  read(key: string): { readonly result: object; readonly pieces: readonly WirePayload[]; readonly stamp: string } {
    const stream = this.#byKey.get(key)
    if (!stream) return { result: {}, pieces: [], stamp: '' }
    const { id, n, status, meta, result, pieces } = stream
    const answer = { stream: id, seq: n, status, ...(meta !== undefined && { meta }), from: 0 }
    return {
      result: result === undefined ? answer : { ...answer, result },
      pieces: pieces.every((piece) => typeof piece === 'string') && pieces.length > 0 ? [rolledUp(pieces)] : pieces,
      stamp: `${id}:${n}:text`,
    }
  }

  /** The stream that is being written; its next message. */
  active(key: string): Pick<StreamMessage, 'of' | 'n'> | undefined {
    const stream = this.#byKey.get(key)
    return stream?.status === 'active' ? { of: stream.id, n: stream.n + 1 } : undefined
  }

  /** Forgets everything, like a log that was replaced. */
  clear(): void {
    this.#byKey.clear()
  }
}

function rolledUp(pieces: readonly WirePayload[]): string {
  return JSON.stringify(pieces.map((piece) => JSON.parse(piece as string)).join(''))
}
