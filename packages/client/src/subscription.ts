import { callSafely } from './call-safely.js'
import { Emitter } from './emitter.js'
import type { Gap } from './events.js'
import { MessageBuffer } from './message-buffer.js'
import { isSeen, type ParsedPosition, parsePosition } from './position.js'
import { WebMQError } from './protocol/index.js'
import type { ListenOptions, ListenResult, Message, MessageHandler, Subscription, SubscriptionEvents } from './types.js'

/** What a subscription may touch. */
export interface SubscriptionContext {
  /** Takes the subscription out of the registry; resolves when the server knows. */
  remove(subscription: LiveSubscription): Promise<void>
  onError(error: unknown, message?: Message<unknown>): void
}

interface Deferred {
  readonly promise: Promise<ListenResult>
  resolve(result: ListenResult): void
  reject(error: unknown): void
}

/** Default of `bufferMaxMessages`: more than the 10,000 messages that a server replays by default. */
const BUFFER_MAX_MESSAGES = 16_384

/** The registry's side of a {@link Subscription}: what was seen so far, and to whom messages go. */
export class LiveSubscription implements Subscription<unknown> {
  readonly pattern: string
  readonly handler: MessageHandler<unknown> | undefined
  readonly #context: SubscriptionContext
  readonly #options: ListenOptions
  readonly #emitter: Emitter<SubscriptionEvents>
  #ready = deferred()
  #buffer: MessageBuffer<Message<unknown>> | undefined
  /** The last live message on the connection when the listen became live: it says nothing about this listen. */
  #latestBefore: ParsedPosition | undefined
  state: Subscription<unknown>['state'] = 'pending'
  ready = this.#ready.promise
  droppedCount = 0
  /** Everything up to here was handled, or need not be; what to continue from after a reconnect. */
  position: ParsedPosition | undefined
  /** Whether it has been active: from then on, not knowing where to continue from is a gap. */
  wasActive = false

  constructor(
    pattern: string,
    handler: MessageHandler<unknown> | undefined,
    options: ListenOptions,
    context: SubscriptionContext,
  ) {
    this.pattern = pattern
    this.handler = handler
    this.#options = options
    this.#context = context
    this.#emitter = new Emitter((error) => context.onError(error))
    this.position = parsePosition(options.since)
    if (!handler) this.#createBuffer()
    const { signal } = options
    if (signal?.aborted) this.close(new WebMQError('E_ABORTED'), true)
    else signal?.addEventListener('abort', this.#onAbort)
  }

  /** Where the app wants to begin, until the first acknowledgement. */
  get last(): number | undefined {
    return this.wasActive || this.position ? undefined : this.#options.last
  }

  on<E extends keyof SubscriptionEvents>(event: E, handler: (event: SubscriptionEvents[E]) => unknown): () => void {
    return this.#emitter.on(event, handler)
  }

  unlisten(): Promise<void> {
    this.close()
    return this.#context.remove(this)
  }

  // Where the runtime has no `Symbol.dispose` yet, this is a method of an odd name that nobody calls.
  [Symbol.dispose](): void {
    void this.unlisten()
  }

  [Symbol.asyncIterator](): AsyncIterator<Message<unknown>, undefined> {
    const buffer = this.#buffer ?? this.#createBuffer()
    return {
      next: () => buffer.next(),
      return: async () => {
        await this.unlisten()
        return { done: true, value: undefined }
      },
    }
  }

  /** The server has accepted the listen; `latest` is the position of the last live message before. */
  activate(result: ListenResult, latest: ParsedPosition | undefined, since?: string): void {
    this.state = 'active'
    this.wasActive = true
    this.#latestBefore = latest
    this.#ready.resolve(result)
    this.#emitter.emit('ready', result)
    if (result.gap) this.gap({ pattern: this.pattern, reason: result.gap, since })
  }

  gap(gap: Gap): void {
    this.#emitter.emit('gap', gap)
  }

  /** The connection is gone; `latest` is the position of the last live message on it, whatever its pattern [P-8.7]. */
  suspend(latest: ParsedPosition | undefined): void {
    if (this.state !== 'active') return
    this.state = 'pending'
    if (latest !== this.#latestBefore && isSeen(this.position, latest)) this.position = latest
    this.#ready = deferred()
    this.ready = this.#ready.promise
  }

  /** Hands over a message, unless it is known to have been handled. */
  deliver(message: Message<unknown>, position: ParsedPosition | undefined): void {
    if (this.state !== 'active' || isSeen(position, this.position)) return
    if (position) this.position = position
    const { handler } = this
    if (handler)
      callSafely(
        () => handler(message.payload, message),
        (error) => this.#context.onError(error, message),
      )
    const kept = this.#buffer?.push(message)
    if (kept === 'dropped') this.droppedCount++
    else if (kept === 'full') {
      const error = new WebMQError('E_BUFFER_OVERFLOW', { detail: this.pattern })
      this.close(error)
      this.#context.onError(error, message)
      void this.#context.remove(this)
    }
  }

  /** Ends it. Readers get the error after what is left in the buffer, unless the app has asked for the end itself. */
  close(error?: WebMQError, isWanted = !error): void {
    if (this.state === 'closed') return
    this.state = 'closed'
    this.#options.signal?.removeEventListener('abort', this.#onAbort)
    this.#ready.reject(error ?? new WebMQError('E_CLOSED', { detail: this.pattern }))
    this.#buffer?.end(isWanted ? undefined : error)
    if (error && !isWanted) this.#emitter.emit('error', error)
    this.#emitter.emit('closed', undefined)
  }

  readonly #onAbort = (): void => {
    this.close(new WebMQError('E_ABORTED'), true)
    void this.#context.remove(this)
  }

  #createBuffer(): MessageBuffer<Message<unknown>> {
    const { bufferMaxMessages = BUFFER_MAX_MESSAGES, overflow = 'close' } = this.#options
    const buffer = new MessageBuffer<Message<unknown>>(bufferMaxMessages, overflow)
    if (this.state === 'closed') buffer.end()
    this.#buffer = buffer
    return buffer
  }
}

function deferred(): Deferred {
  let resolve: Deferred['resolve'] = () => undefined
  let reject: Deferred['reject'] = () => undefined
  const promise = new Promise<ListenResult>((onResolve, onReject) => {
    resolve = onResolve
    reject = onReject
  })
  // Looking at `ready` is optional; not looking must not crash the process.
  promise.catch(() => undefined)
  return { promise, resolve, reject }
}
