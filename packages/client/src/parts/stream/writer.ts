import { encodeJson } from '../../core/checks.js'
import type { WebMQClient } from '../../core/client.js'
import type { ClientCore, ClientPart } from '../../core/client-part.js'
import { backoffMs } from '../../core/connection/backoff.js'
import { bytesOf } from '../../core/publishing/payload.js'
import { type ErrorCode, WebMQError } from '../../protocol/errors.js'
import type { WirePayload, WriteKind } from '../../protocol/messages.js'
import { encodeStream } from '../../protocol/streams.js'
import { groupsOf } from '../requests/group-client.js'
import type { Membership } from '../requests/types.js'
import { leaseMsOf, WRITERS } from './asking.js'
import type { StreamWriter } from './types.js'

/** Default of the server. */
const MAX_PAYLOAD_BYTES = 262_144

/** JSON of one UTF-16 unit has at most 6 bytes, as in `\ud83d`. */
const MAX_BYTES_PER_UNIT = 6

interface Waiter {
  resolve(): void
  reject(error: WebMQError): void
}

/** One message of the stream, as it is sent and sent again. */
interface Batch {
  readonly kind: WriteKind
  readonly sequence: number
  readonly payload: WirePayload
  readonly waiters: readonly Waiter[]
}

/** An append that waits, or an end. */
interface Piece extends Waiter {
  readonly kind: WriteKind
  readonly content: string | Uint8Array
}

/** The writers of one client. */
export class Writers implements ClientPart {
  readonly core: ClientCore
  readonly all = new Set<LiveWriter>()

  constructor(core: ClientCore) {
    this.core = core
  }

  up(): void {
    for (const writer of this.all) writer.up()
  }

  close(error: WebMQError): void {
    for (const writer of [...this.all]) writer.broken(error)
  }
}

/** Implements {@link StreamWriter}. At most one message waits for its answer: so the log has no holes. */
export class LiveWriter implements StreamWriter {
  readonly key: string
  readonly id: string
  readonly #writers: Writers
  readonly #client: WebMQClient
  readonly #abort = new AbortController()
  readonly #handlers = new Set<(data: unknown) => unknown>()
  #pieces: Piece[] = []
  #waitingBytes = 0
  /** First half of a character: readers of most languages cannot join two halves. */
  #half = ''
  #batch: Batch | undefined
  #next = 0
  #attempt = 0
  #isBinary: boolean | undefined
  #isStopped = false
  /** `end` or `fail` was called. */
  #isEnding = false
  #error: WebMQError | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #membership: Membership | undefined

  constructor(writers: Writers, client: WebMQClient, key: string, id: string) {
    this.#writers = writers
    this.#client = client
    this.key = key
    this.id = id
    writers.all.add(this)
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** Begins the stream: resolves when it is the stream of its key, and its writer is found. */
  async start(meta: unknown): Promise<void> {
    try {
      await this.#put('start', jsonOf(meta))
    } catch (error) {
      this.broken(error as WebMQError)
      throw error
    }
    if (this.#error || this.#isEnding) return
    const membership = groupsOf(this.#client).join(this.key, (body) => this.#asked(body), WRITERS, true)
    this.#membership = membership
    await membership.ready.catch((error: unknown) => {
      // It can be written all the same.
      if (membership.error) this.#writers.core.report({ error, key: this.key })
    })
  }

  append(content: string | ArrayBuffer | ArrayBufferView): Promise<void> {
    const piece = bytesOf(content) ?? content
    const isBinary = piece instanceof Uint8Array
    if (this.#isEnding) return refused('E_STREAM_ENDED', this.key)
    if ((!isBinary && typeof piece !== 'string') || isBinary !== (this.#isBinary ?? isBinary)) {
      return refused('E_PAYLOAD_INVALID', 'either text or bytes')
    }
    if (this.#waitingBytes + piece.length > this.#writers.core.options.maxBytes) {
      return refused('E_QUEUE_FULL', `stream ${this.key}`)
    }
    if (piece.length === 0) return Promise.resolve()
    this.#isBinary = isBinary
    return this.#put('append', piece.slice())
  }

  end(result?: unknown): Promise<void> {
    try {
      return this.#finish('end', jsonOf(result))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  fail(error: unknown): Promise<void> {
    const { code, message } =
      error instanceof WebMQError ? error : { code: undefined, message: 'the writer has failed' }
    return this.#finish('fail', JSON.stringify({ message: message.slice(0, 512), code }))
  }

  onMessage(handler: (data: unknown) => unknown): () => void {
    this.#handlers.add(handler)
    return () => this.#handlers.delete(handler)
  }

  async close(): Promise<void> {
    if (!this.#isEnding && !this.#error) await this.fail(undefined)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** A connection is live. What had no answer is sent again, unchanged. */
  up(): void {
    clearTimeout(this.#timer)
    if (this.#batch) this.#send(this.#batch)
    else if (this.#pieces.length > 0) this.#pump()
    // The lease may end soon, and its node may be another one.
    else if (!this.#isEnding) this.#beat()
  }

  /** It goes on no longer. */
  broken(error: WebMQError): void {
    this.#error ??= error
    const waiters = [...(this.#batch?.waiters ?? []), ...this.#pieces.splice(0)]
    this.#batch = undefined
    this.#leave()
    for (const { reject } of waiters) reject(error)
    this.#abort.abort(error)
  }

  #finish(kind: 'end' | 'fail', payload: string): Promise<void> {
    if (this.#isEnding) return refused('E_STREAM_ENDED', this.key)
    this.#isEnding = true
    return this.#put(kind, payload)
  }

  #put(kind: WriteKind, content: string | Uint8Array): Promise<void> {
    const put = new Promise<void>((resolve, reject) => {
      if (this.#error) {
        reject(this.#error)
        return
      }
      this.#waitingBytes += content.length
      this.#pieces.push({ kind, content, resolve, reject })
      // In a later microtask, so that appends of one turn are one message.
      if (!this.#batch) queueMicrotask(() => this.#pump())
    })
    // Whoever does not await it is told by the signal: a stream that is lost does not end the process of its writer.
    put.catch(() => undefined)
    return put
  }

  #pump(): void {
    const [first] = this.#pieces
    if (this.#batch || this.#error || !this.#writers.core.sender.isLive) return
    if (first) {
      const isAppend = this.#half || first.kind === 'append'
      // A stop may come while the end waits.
      const kind = isAppend ? 'append' : this.#isStopped ? 'stop' : first.kind
      const { payload, waiters } = isAppend ? this.#merge() : this.#single()
      this.#batch = { kind, sequence: this.#next++, payload, waiters }
      this.#send(this.#batch)
    } else this.#rest()
  }

  #single(): Pick<Batch, 'payload' | 'waiters'> {
    const piece = this.#pieces.shift() as Piece
    this.#waitingBytes -= piece.content.length
    return { payload: this.#isStopped ? '' : piece.content, waiters: [piece] }
  }

  /** Appends that wait, as far as they fit into one message. */
  #merge(): Pick<Batch, 'payload' | 'waiters'> {
    const maxBytes = this.#client.status.limits?.maxPayloadBytes ?? MAX_PAYLOAD_BYTES
    // One unit more may be left from the message before.
    let left = this.#isBinary ? maxBytes : Math.max(1, Math.floor((maxBytes - 2) / MAX_BYTES_PER_UNIT) - 1)
    const contents: (string | Uint8Array)[] = []
    const waiters: Waiter[] = []
    while (left > 0 && this.#pieces[0]?.kind === 'append') {
      const piece = this.#pieces[0]
      const content = piece.content.slice(0, left)
      contents.push(content)
      left -= content.length
      this.#waitingBytes -= content.length
      if (content.length < piece.content.length) {
        this.#pieces[0] = { ...piece, content: piece.content.slice(content.length) }
      } else waiters.push(this.#pieces.shift() as Piece)
    }
    if (this.#isBinary) {
      const payload = new Uint8Array(maxBytes - left)
      let at = 0
      for (const part of contents as Uint8Array[]) {
        payload.set(part, at)
        at += part.length
      }
      return { payload, waiters }
    }
    const text = this.#half + contents.join('')
    // Its second half may be in the next append; the end has none.
    const mayFollow = !this.#isEnding || this.#pieces.length > 1
    const length = text.length - (mayFollow && /[\ud800-\udbff]$/.test(text) ? 1 : 0)
    this.#half = text.slice(length)
    return { payload: JSON.stringify(text.slice(0, length)), waiters }
  }

  #send(batch: Batch): void {
    const { core } = this.#writers
    core.requests.send(
      (id) => encodeStream({ id, key: this.key, stream: this.id, ...batch }),
      (answer) => {
        if (batch !== this.#batch) return
        if (!(answer instanceof WebMQError)) {
          this.#attempt = 0
          this.#batch = undefined
          if (this.#isEnding && this.#pieces.length === 0) this.#leave()
          for (const { resolve } of batch.waiters) resolve()
          this.#pump()
        } else if (answer.code === 'E_DISCONNECTED') return
        else if (answer.retryable && answer.code !== 'E_STREAM_BUSY') {
          // Not longer than a beat takes: its readers would think that it is lost.
          const waitMs = Math.min(backoffMs(this.#attempt++, core.options), leaseMsOf(this.#client) / 3)
          this.#after(waitMs, () => this.#send(batch))
        } else this.broken(answer)
      },
    )
  }

  /** Nothing waits: from time to time it says that its writer is there. */
  #rest(): void {
    if (!this.#isEnding) this.#after(leaseMsOf(this.#client) / 3, () => this.#beat())
  }

  #beat(): void {
    const beat = { key: this.key, stream: this.id, sequence: this.#next - 1, kind: 'beat', payload: '' } as const
    this.#writers.core.requests.send(
      (id) => encodeStream({ id, ...beat }),
      (answer) => {
        // The end, which may be in the log before its answer is here, tells itself how it went.
        if (answer instanceof WebMQError && !answer.retryable && !this.#isEnding) this.broken(answer)
      },
    )
    this.#rest()
  }

  #after(ms: number, act: () => void): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#writers.core.sender.isLive && act(), ms)
  }

  #leave(): void {
    clearTimeout(this.#timer)
    this.#writers.all.delete(this)
    void this.#membership?.close()
  }

  async #asked(body: unknown): Promise<unknown> {
    const { type, stream, reason, data } = Object(body)
    if (type === 'stop' && (stream === undefined || stream === this.id)) {
      // The end is on its way: there is nothing to stop.
      if (this.#isEnding && !this.#pieces[0]) return null
      this.#isStopped = true
      const detail = typeof reason === 'string' ? reason.slice(0, 512) : 'stopped'
      this.#abort.abort(new WebMQError('E_ABORTED', { detail }))
      return null
    }
    if (type === 'message' && this.#handlers.size > 0) {
      let reply: unknown
      for (const handler of this.#handlers) reply = await handler(data)
      return reply
    }
    throw new WebMQError(type === 'stop' ? 'E_STREAM_ENDED' : 'E_UNSUPPORTED')
  }
}

function refused(code: ErrorCode, detail: string): Promise<never> {
  return Promise.reject(new WebMQError(code, { detail }))
}

/** @throws {WebMQError} `E_PAYLOAD_INVALID`. */
function jsonOf(value: unknown): string {
  return value === undefined ? '' : encodeJson(value)
}
