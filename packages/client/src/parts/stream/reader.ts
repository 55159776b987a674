import { callSafely } from '../../core/events/call-safely.js'
import type { Receiver, ReceiverContext } from '../../core/listening/receiver.js'
import { clientOf, type GivenClient } from '../../core/of-client.js'
import type { Message, Subscription } from '../../core/types.js'
import { WebMQError } from '../../protocol/errors.js'
import { encodeRead, parseStreamPlace, type StreamPlace, type StreamSummary } from '../../protocol/streams.js'
import { readsOf } from '../history/reads.js'
import { type LoadedReceiver, loaded } from '../load/index.js'
import { ask, leaseMsOf } from './asking.js'
import { Cursor, Story } from './story.js'
import type { ReadStatus, ReadStreamOptions, StreamPart, StreamReader } from './types.js'

/** Implements {@link StreamReader}: a listen whose state is loaded by `read`. */
export class LiveReader implements StreamReader {
  readonly key: string
  readonly #client: GivenClient
  /** Of the one stream that it reads. */
  #id: string | undefined
  readonly #loader: LoadedReceiver<unknown>
  readonly #subscription: Subscription
  readonly #handlers = new Set<() => unknown>()
  #context!: ReceiverContext
  #story = new Story(undefined, 'loading')
  /** Why no more comes. */
  #closed: WebMQError | undefined
  /** Nothing came for too long: the node may not know that it should watch the writer. */
  #watchdog: ReturnType<typeof setTimeout> | undefined
  #isOverdue = false
  /** A message that came without those before it. What is read has to include it. */
  #awaited: StreamPlace | undefined
  #isSilent = false

  constructor(client: GivenClient, key: string, { id, signal }: ReadStreamOptions) {
    this.key = key
    this.#client = client
    this.#id = id
    const open = () => {
      if (!this.#isSilent) this.#closed = undefined
    }
    const receiver: Receiver = {
      attach: (context) => {
        this.#context = context
      },
      deliver: (message) => this.#deliver(message),
      accepted: open,
      gap: open,
      close: (error) => this.#end(error ?? new WebMQError('E_CLOSED', { detail: key })),
    }
    this.#loader = loaded(receiver, ({ signal }) => this.#load(signal))
    this.#subscription = clientOf(client).listen(key, this.#loader, signal && { signal })
  }

  get id(): string | undefined {
    return this.#story.id
  }
  get status(): ReadStatus {
    return this.#story.status
  }
  get content(): string | Uint8Array {
    return this.#story.content
  }
  get isCut(): boolean {
    return this.#story.isCut
  }
  get meta(): unknown {
    return this.#story.meta
  }
  get result(): unknown {
    return this.#story.result
  }
  get error(): WebMQError | undefined {
    return this.#story.error ?? (this.#isSilent ? undefined : this.#closed)
  }

  get ready(): Promise<void> {
    const ready = this.#until(() => this.status !== 'loading')
    ready.catch(() => undefined)
    return ready
  }

  async text(): Promise<string> {
    const content = await this.#whole()
    if (typeof content === 'string') return content
    throw new WebMQError('E_PAYLOAD_INVALID', { detail: `${this.key} has bytes` })
  }

  async bytes(): Promise<Uint8Array> {
    const content = await this.#whole()
    return typeof content === 'string' ? new TextEncoder().encode(content) : content
  }

  onChange(handler: () => unknown): () => void {
    const call = () => handler()
    this.#handlers.add(call)
    return () => this.#handlers.delete(call)
  }

  onText(handler: (part: StreamPart) => unknown): () => void {
    let cursor = new Cursor(this.#story)
    const tell = () => {
      if (cursor.story !== this.#story) {
        // The rest of the stream before.
        const rest = cursor.next()
        if (rest) handler(rest)
        cursor = new Cursor(this.#story)
      }
      const part = cursor.next()
      if (part) handler(part)
    }
    queueMicrotask(() => this.#handlers.has(call) && this.#call(call))
    const call = () => tell()
    this.#handlers.add(call)
    return () => this.#handlers.delete(call)
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<StreamPart, undefined> {
    let cursor: Cursor | undefined
    try {
      for (;;) {
        if (!cursor && this.id !== undefined) {
          cursor = new Cursor(this.#story)
          // What the reader says of itself stays that of these parts.
          this.#id = this.id
        }
        const part = cursor?.next()
        if (part) yield part
        else if (cursor?.story.isEnded) return undefined
        else if (this.#closed) {
          if (this.#isSilent) return undefined
          throw this.#closed
        } else await this.#nextChange()
      }
    } finally {
      this.close()
    }
  }

  async stop(reason?: string): Promise<void> {
    await this.ready
    const story = this.#story
    if (story.status !== 'active') return
    const body = { type: 'stop', stream: story.id, ...(reason !== undefined && { reason }) }
    await ask(this.#client, this.key, body, () => story.isEnded)
  }

  async send(data: unknown): Promise<unknown> {
    return ask(this.#client, this.key, { type: 'message', data })
  }

  close(): void {
    this.#isSilent = true
    void this.#subscription.close()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  #deliver(message: Message<unknown>): void {
    const place = parseStreamPlace(message.stream ?? '')
    if (place && this.#take(place, message.payload)) this.#changed()
  }

  /** The subscription has ended, or the client is closed. */
  #end(error: WebMQError): void {
    clearTimeout(this.#watchdog)
    this.#closed ??= error
    this.#notify()
  }

  #take(place: StreamPlace, payload: unknown): boolean {
    const { stream: id, sequence, kind } = place
    if (this.#id !== undefined && id !== this.#id) return false
    const now = this.#story
    const isHere = id === now.id
    if (kind === 'beat') {
      if (isHere) this.#watch()
      return false
    }
    if (isHere ? now.status !== 'active' || sequence <= now.sequence : now.status === 'active') return false
    const story = isHere ? now : new Story(id, 'active')
    // What did not come may be in the log.
    if (sequence !== story.sequence + 1) {
      this.#awaited = place
      this.#again()
      return false
    }
    story.take(place, payload)
    this.#story = story
    return true
  }

  async #load(signal: AbortSignal): Promise<string | undefined> {
    try {
      const { messages, position, result } = await readsOf(clientOf(this.#client)).ask(`read ${this.key}`, (id) =>
        encodeRead({ id, key: this.key }),
      )
      if (signal.aborted) return undefined
      this.#loaded(
        Object(result) as StreamSummary,
        messages.map(({ payload }) => payload),
      )
      this.#changed()
      return position
    } catch (error) {
      if (!(error instanceof WebMQError) || error.retryable) throw error
      if (!signal.aborted) this.#context.fail(error)
      return undefined
    }
  }

  #loaded(
    { stream, sequence = 0, status = 'active', meta, result, isCut }: StreamSummary,
    pieces: readonly unknown[],
  ): void {
    const now = this.#story
    const isOverdue = this.#isOverdue
    this.#isOverdue = false
    if (stream === undefined || (this.#id !== undefined && stream !== this.#id)) {
      if (now.status === 'loading') this.#story = new Story(undefined, 'none')
      // The log has forgotten it. Its writer may go on; if it does not, nobody else will ever say so.
      else if (now.status === 'active' && (isOverdue || stream !== undefined)) now.end('lost')
      return
    }
    const isHere = stream === now.id
    const awaited = this.#awaited?.stream === stream ? this.#awaited.sequence : 0
    if (sequence < awaited || (isHere && now.isCut && sequence < now.sequence)) throw new WebMQError('E_NODE_BEHIND')
    this.#awaited = undefined
    // This reader has as much, and all of it.
    if (isHere && !now.isCut && (now.isEnded || (sequence <= now.sequence && status === 'active'))) return
    if (!isHere && now.status === 'active') now.end('lost')
    const story = isHere ? now : new Story(stream, 'active')
    story.sequence = sequence
    story.meta = meta
    story.isCut = isCut === true
    story.replace(pieces)
    if (status !== 'active') story.end(status, result)
    this.#story = story
  }

  #again(): void {
    this.#loader.gap?.({ pattern: this.key, reason: 'limit' })
  }

  #watch(): void {
    clearTimeout(this.#watchdog)
    if (this.status !== 'active' || this.#closed) return
    this.#watchdog = setTimeout(
      () => {
        if (this.#subscription.state !== 'active') return this.#watch()
        this.#isOverdue = true
        this.#again()
      },
      leaseMsOf(this.#client) * (2 + Math.random()),
    )
  }

  #changed(): void {
    this.#watch()
    this.#notify()
  }

  #notify(): void {
    for (const handler of [...this.#handlers]) this.#call(handler)
  }

  #call(handler: () => unknown): void {
    callSafely(handler, (error) => this.#context.report(error))
  }

  #nextChange(): Promise<void> {
    return new Promise((resolve) => {
      const end = this.onChange(() => {
        end()
        resolve()
      })
    })
  }

  async #until(isDone: () => boolean): Promise<void> {
    while (!isDone()) {
      if (this.#closed) throw this.#closed
      await this.#nextChange()
    }
  }

  async #whole(): Promise<string | Uint8Array> {
    await this.#until(() => this.id !== undefined)
    const story = this.#story
    await this.#until(() => story.isEnded)
    if (story.error) throw story.error
    return story.content
  }
}
