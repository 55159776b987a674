import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { encodeJson, WebMQError, type WriteKind } from 'webmq-client/protocol'
import type { Position } from '../../kernel/ports/broker.js'
import type { Author } from '../../kernel/publishing/author.js'
import { failureOf, jsonOf } from './payload.js'
import { maxLengthOf, type Piece, partsOf } from './pieces.js'
import type { Streams } from './streams.js'

/** Writes a stream. What is appended while the broker has not answered goes into one message. */
export interface StreamWriter extends AsyncDisposable {
  readonly key: string
  /** Id of the stream. */
  readonly id: string
  /** Aborted once, when somebody asks the stream to stop, or it cannot go on. Its `reason` is a `WebMQError`. */
  readonly signal: AbortSignal
  /**
   * Adds text or bytes, which are copied: a stream has one or the other. Resolves when the log has it; half a character waits for
   * the other half, or for the end.
   * @throws {WebMQError} `E_PAYLOAD_INVALID`: it is neither, or not of the kind that the stream has; `E_STREAM_ENDED`: the stream
   *   has ended, or was given up; `E_QUEUE_FULL`: more than 4 MiB wait, await an append now and then; `E_STREAM_LIMIT`,
   *   `E_BROKER_UNAVAILABLE`.
   */
  append(piece: string | Uint8Array): Promise<void>
  /** Ends the stream; after a stop it counts as stopped. @param result A JSON value for its readers. */
  end(result?: unknown): Promise<void>
  /** Ends the stream as failed; after a stop, as stopped. Readers get the code and message of a `WebMQError` alone. */
  fail(error: unknown): Promise<void>
  /** Answers what readers send. */
  onMessage(handler: (data: unknown) => unknown): void
}

/** What a {@link ProcessWriter} works with. */
export interface WriterContext {
  readonly streams: Pick<Streams, 'write'>
  readonly author: Author
  readonly leaseMs: number
  readonly maxPayloadBytes: number
}

interface Waiting {
  readonly piece: Piece
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

const ID_BYTES = 16
const PAUSE_MS = 200
/** What waits while the broker does not answer; each piece counts its length and an overhead. */
const MAX_WAITING_BYTES = 4 * 1_048_576
const WAITING_OVERHEAD_BYTES = 256
const BEATS_PER_LEASE = 3

/** Writes a stream from the process of a server. One message at a time: so the log has no holes. */
export class ProcessWriter implements StreamWriter {
  readonly key: string
  readonly id = randomBytes(ID_BYTES).toString('base64url')
  readonly #context: WriterContext
  readonly #abort = new AbortController()
  readonly #waiting: Waiting[] = []
  #waitingBytes = 0
  /** The first half of a character whose second half may follow: readers of most languages cannot join two halves. */
  #half = ''
  #position: Position | undefined
  #handler: ((data: unknown) => unknown) | undefined
  #sequence = -1
  #last: Promise<unknown> = Promise.resolve()
  #isPumping = false
  #isBinary: boolean | undefined
  #isStopped = false
  #isOver = false
  /** Its end is on its way: there is nothing to stop. */
  #isEndSent = false
  #beats: NodeJS.Timeout | undefined
  /** Ends its membership in the group of writers. */
  leave: () => unknown = () => undefined

  constructor(key: string, context: WriterContext) {
    this.key = key
    this.#context = context
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** Of its last message in the log, as far as the broker has told it. */
  get position(): Position | undefined {
    return this.#position
  }

  /** Somebody has asked it to stop. */
  get isStopped(): boolean {
    return this.#isStopped
  }

  /** Begins the stream. @throws {WebMQError} As {@link Streams.write}. */
  async start(meta: unknown): Promise<void> {
    await this.#write('start', jsonOf(meta))
    // A beat that fails for another reason is followed by the next one.
    const beat = () => {
      this.#write('beat', '').catch((error) => {
        if (!this.#isOver && isEnded(error)) void this.#broken(error)
      })
    }
    this.#beats = setInterval(beat, this.#context.leaseMs / BEATS_PER_LEASE).unref()
  }

  append(piece: string | Uint8Array): Promise<void> {
    if (this.#isOver) return this.#late()
    const isBinary = piece instanceof Uint8Array
    if ((!isBinary && typeof piece !== 'string') || isBinary !== (this.#isBinary ?? isBinary))
      return Promise.reject(new WebMQError('E_PAYLOAD_INVALID', { detail: 'a stream has either text or bytes' }))
    if (piece.length === 0) return Promise.resolve()
    if (this.#waitingBytes + piece.length > MAX_WAITING_BYTES)
      return Promise.reject(new WebMQError('E_QUEUE_FULL', { detail: `${MAX_WAITING_BYTES} bytes wait` }))
    this.#isBinary = isBinary
    return told(
      new Promise((resolve, reject) => {
        const parts = partsOf(piece, this.#context.maxPayloadBytes)
        this.#waitingBytes += piece.length + parts.length * WAITING_OVERHEAD_BYTES
        parts.forEach((part, index) => {
          this.#waiting.push({ piece: part, resolve: index === parts.length - 1 ? resolve : () => undefined, reject })
        })
        if (!this.#isPumping) void this.#pump()
      }),
    )
  }

  end(result?: unknown): Promise<void> {
    try {
      return this.#finish('end', jsonOf(result))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  fail(error: unknown): Promise<void> {
    return this.#finish('fail', failureOf(error))
  }

  /** Fails the stream, unless it has ended: its server stops. */
  async giveUp(error: WebMQError): Promise<void> {
    if (this.#isOver) return
    try {
      await this.fail(error)
    } finally {
      this.#abort.abort(error)
    }
  }

  onMessage(handler: (data: unknown) => unknown): void {
    this.#handler = handler
  }

  /** A request at the key. */
  async asked(request: unknown): Promise<unknown> {
    const { type, reason, data } = Object(request) as Readonly<Record<string, unknown>>
    if (type === 'message' && this.#handler !== undefined) return await this.#handler(data)
    assertStop(request, this.id)
    if (this.#isEndSent) return null
    this.#isStopped = true
    this.#abort.abort(new WebMQError('E_ABORTED', { detail: typeof reason === 'string' ? reason : 'stopped' }))
    return null
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#isOver) await this.fail(undefined)
  }

  #late(): Promise<void> {
    const late = Promise.reject(new WebMQError('E_STREAM_ENDED', { detail: this.key }))
    return this.signal.aborted ? told(late) : late
  }

  #finish(kind: WriteKind, payload: string): Promise<void> {
    return this.#isOver ? this.#late() : told(this.#finished(kind, payload))
  }

  async #finished(kind: WriteKind, payload: string): Promise<void> {
    this.#isOver = true
    while (this.#isPumping) await this.#last.catch(() => undefined)
    try {
      if (this.#half !== '') await this.#write('append', encodeJson(this.#half))
      this.#isEndSent = true
      await (this.#isStopped ? this.#write('stop', '') : this.#write(kind, payload))
    } catch (error) {
      this.#abort.abort(error)
      throw error
    } finally {
      this.#close()
    }
  }

  async #pump(): Promise<void> {
    this.#isPumping = true
    // Appends of one turn are one message.
    await undefined
    while (this.#waiting.length > 0) {
      const batch = this.#batch()
      try {
        const payload = this.#payloadOf(batch.map(({ piece }) => piece))
        if (payload.length > 0) await this.#write('append', payload)
        for (const { resolve } of batch) resolve()
      } catch (error) {
        await this.#broken(error)
        for (const { reject } of [...batch, ...this.#waiting.splice(0)]) reject(error)
      }
    }
    this.#isPumping = false
  }

  /** Nothing, if there is no more than half a character. */
  #payloadOf(pieces: readonly Piece[]): string | Uint8Array {
    if (typeof pieces[0] !== 'string') return Buffer.concat(pieces as Uint8Array[])
    const text = this.#half + pieces.join('')
    this.#half = /[\ud800-\udbff]$/.test(text) ? text.slice(-1) : ''
    const whole = text.slice(0, text.length - this.#half.length)
    return whole === '' ? '' : encodeJson(whole)
  }

  /** What fits into one message. */
  #batch(): Waiting[] {
    const [first] = this.#waiting
    const maxLength = maxLengthOf(first?.piece ?? '', this.#context.maxPayloadBytes)
    let length = 0
    let count = 0
    for (const { piece } of this.#waiting) {
      length += piece.length
      if (count > 0 && length > maxLength) break
      count++
    }
    const batch = this.#waiting.splice(0, count)
    for (const { piece } of batch) this.#waitingBytes -= piece.length + WAITING_OVERHEAD_BYTES
    return batch
  }

  /** One after the other, and each again while the broker is away. */
  #write(kind: WriteKind, payload: string | Uint8Array): Promise<void> {
    const { streams, author, leaseMs } = this.#context
    const written = this.#last
      .catch(() => undefined)
      .then(async () => {
        const sequence = kind === 'beat' ? this.#sequence : ++this.#sequence
        const write = { key: this.key, stream: this.id, sequence, kind, payload }
        const endMs = performance.now() + leaseMs
        for (;;) {
          try {
            const { position } = await streams.write(author, write, typeof payload !== 'string')
            this.#position = position ?? this.#position
            return
          } catch (error) {
            if (kind === 'beat' || !isPassing(error, kind) || performance.now() > endMs) throw error
            await sleep('retryAfterMs' in error ? Math.max(PAUSE_MS, Number(error.retryAfterMs)) : PAUSE_MS)
          }
        }
      })
    this.#last = written
    return written
  }

  async #broken(error: unknown): Promise<void> {
    this.#isOver = true
    this.#close()
    // What is refused for good is not in the log, so its number is free: readers need not wait for the lease.
    if (error instanceof WebMQError && !error.retryable && !isEnded(error)) {
      this.#sequence--
      await this.#write('fail', failureOf(error)).catch(() => undefined) // Then the lease tells them.
    }
    this.#abort.abort(error)
  }

  #close(): void {
    clearInterval(this.#beats)
    this.leave()
  }
}

/** @throws {WebMQError} A request of a client asks for something else than to stop this stream. */
export function assertStop(request: unknown, id: string): void {
  const { type, stream = id } = Object(request) as Readonly<Record<string, unknown>>
  if (type !== 'stop') throw new WebMQError('E_UNSUPPORTED', { detail: 'no message is expected' })
  if (stream !== id) throw new WebMQError('E_STREAM_ENDED')
}

const PASSING = new Set(['E_NODE_BEHIND', 'E_BROKER_UNAVAILABLE', 'E_TIMEOUT'])

/** Whether the same message may be accepted later. A start that comes too fast is refused at once. */
function isPassing(error: unknown, kind: WriteKind): error is WebMQError {
  if (!(error instanceof WebMQError)) return false
  return PASSING.has(error.code) || (error.code === 'E_RATE_LIMIT' && kind !== 'start')
}

function isEnded(error: unknown): boolean {
  return error instanceof WebMQError && error.code === 'E_STREAM_ENDED'
}

/** Whoever does not await it is told by the signal: a stream that is lost does not end the process of its writer. */
function told(promise: Promise<void>): Promise<void> {
  promise.catch(() => undefined)
  return promise
}
