import { callSafely } from '../events/call-safely.js'
import { Emitter } from '../events/emitter.js'
import type { Gap } from '../events/events.js'
import { invalid } from '../options.js'
import { WebMQError } from '../protocol/index.js'
import type {
  ListenOptions,
  ListenResult,
  Message,
  MessageHandler,
  Subscription,
  SubscriptionEvents,
} from '../types.js'
import { rangeOf } from './duration.js'
import { Loader } from './loader.js'
import { MessageBuffer } from './message-buffer.js'
import { isSeen, type ParsedPosition, parsePosition } from './position.js'
import type { Start } from './requests.js'
import { ResumePoint } from './resume-point.js'

/** The subscription's access to the registry. */
export interface SubscriptionContext {
  /** Removes the subscription from the registry. Resolves when the server knows. */
  remove(subscription: LiveSubscription): Promise<void>
  onError(error: unknown, message?: Message<unknown>): void
  onGap(gap: Gap): void
  /** Time before attempt number `attempt` of the app's `load`, counted from 0. */
  backoffMs(attempt: number): number
}

interface Deferred {
  readonly promise: Promise<ListenResult>
  resolve(result: ListenResult): void
  reject(error: unknown): void
}

/** Default of `bufferMaxMessages`: more than the 10,000 messages that a server replays by default. */
const BUFFER_MAX_MESSAGES = 16_384

/** Implements a {@link Subscription}: tracks its position, and passes messages to its handler or buffer. */
export class LiveSubscription implements Subscription<unknown> {
  readonly pattern: string
  readonly handler: MessageHandler<unknown> | undefined
  /** Replaced when the subscription moves to another client. */
  context: SubscriptionContext
  readonly options: ListenOptions
  readonly #emitter: Emitter<SubscriptionEvents>
  readonly #start: Start
  readonly #loader: Loader | undefined
  #ready = deferred()
  /** Whether the app was told that there is no room for this listen. */
  #isHeld = false
  /** Whether `load` was running when the client was closed. */
  #wasLoading = false
  /** Sum of the replay's pages so far, between the first and the last page [P-6.9]. */
  #pages: ListenResult | undefined
  #buffer: MessageBuffer<Message<unknown>> | undefined
  /** The position up to which messages were handled. */
  readonly resume: ResumePoint
  state: Subscription<unknown>['state'] = 'pending'
  ready = this.#ready.promise
  droppedCount = 0

  constructor(
    pattern: string,
    handler: MessageHandler<unknown> | undefined,
    options: ListenOptions,
    context: SubscriptionContext,
  ) {
    this.pattern = pattern
    this.handler = handler
    this.options = options
    this.context = context
    this.#emitter = new Emitter((error) => this.context.onError(error))
    this.#start = startOf(options)
    this.resume = new ResumePoint(parsePosition(options.since))
    if (options.load) this.#loader = this.#createLoader(options.load)
    if (!handler) this.#createBuffer()
    const { signal } = options
    if (signal?.aborted) this.close(new WebMQError('E_ABORTED'), true)
    else signal?.addEventListener('abort', this.#onAbort)
  }

  /** Where a replay begins: at the last handled position or, until the first acknowledgement, where the app asked. */
  get start(): Start {
    const { position, wasLive } = this.resume
    if (position) return { since: position.text }
    return wasLive ? {} : this.#start
  }

  get isLoading(): boolean {
    return !!this.#loader?.isLoading
  }

  on<E extends keyof SubscriptionEvents>(event: E, handler: (event: SubscriptionEvents[E]) => unknown): () => void {
    return this.#emitter.on(event, handler)
  }

  unlisten(): Promise<void> {
    this.close()
    return this.context.remove(this)
  }

  // In runtimes without `Symbol.dispose`, this is a method named "undefined" that nobody calls.
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

  /**
   * The server has accepted the listen, with a page of the replay or all of it.
   * @param latest Position of the last live message before.
   */
  accept(page: ListenResult, isLast: boolean, latest: ParsedPosition | undefined, since?: string): void {
    const { gap } = page
    const isFirst = this.#wasLoading || (!this.#pages && !this.resume.wasLive)
    this.#isHeld = this.#wasLoading = false
    const before = this.#pages ?? { ...page, replayed: 0 }
    const sum = { ...page, recovered: before.recovered && page.recovered, gap: before.gap ?? gap }
    const result = { ...sum, replayed: before.replayed + page.replayed }
    // A page's messages are counted as they arrive: the connection may be lost before all of them are here.
    this.#pages = isLast ? undefined : { ...sum, replayed: before.replayed }
    if (isLast) {
      this.state = 'active'
      this.resume.live(latest)
      this.#ready.resolve(result)
      this.#emitter.emit('ready', result)
    }
    if (gap) this.gap({ pattern: this.pattern, reason: gap, since })
    else if (isFirst) this.#loader?.start()
  }

  gap(gap: Gap): void {
    if (this.state === 'closed') return
    this.#emitter.emit('gap', gap)
    this.#loader?.start(gap)
  }

  /** The connection is lost. `latest` is the position of its last live message, of any pattern [P-8.7]. */
  suspend(latest: ParsedPosition | undefined): void {
    if (this.state !== 'active') return
    this.resume.advance(this.resume.at(latest))
    this.reopen()
  }

  /** It waits, again, for the server to accept it. */
  reopen(): void {
    this.state = 'pending'
    this.#ready = deferred()
    this.ready = this.#ready.promise
  }

  /** There is no room for it now: `ready` rejects, another one follows. Returns whether that is new to the app. */
  hold(error: WebMQError): boolean {
    if (this.#isHeld || this.state !== 'pending') return false
    this.#isHeld = true
    this.#ready.reject(error)
    this.reopen()
    this.#emitter.emit('error', error)
    return true
  }

  /**
   * The client is closed. Loops end; a handler gets messages again when the client is opened.
   * @returns Whether it can be taken up again.
   */
  shut(error: WebMQError, isWanted: boolean): boolean {
    if (!this.handler) this.close(error, isWanted)
    if (this.state === 'closed') return false
    this.state = 'closed'
    this.#ready.reject(error)
    this.#wasLoading ||= this.isLoading
    this.#loader?.stop()
    this.#buffer?.end(isWanted ? undefined : error)
    this.#buffer = this.#pages = undefined
    // The app that called `listen` has no handlers yet.
    queueMicrotask(() => {
      if (!isWanted) this.#emitter.emit('error', error)
      this.#emitter.emit('closed', undefined)
    })
    return true
  }

  /** Position up to which everything was handled, or taken by a reader; `undefined` if unknown. */
  handledPosition(latest: ParsedPosition | undefined): ParsedPosition | undefined {
    if (this.isLoading) return undefined
    if (this.#buffer?.size) return parsePosition(this.#buffer.taken?.position)
    return this.state === 'active' ? this.resume.at(latest) : this.resume.position
  }

  /** Resolves when every delivered message was handled or taken; `undefined` if that is so now. */
  whenRead(): Promise<unknown> | undefined {
    return this.isLoading ? this.#loader?.whenLoaded().then(() => this.whenRead()) : this.#buffer?.whenEmpty()
  }

  /** Delivers a message, unless it was handled before. Buffers it while `load` runs. */
  deliver(message: Message<unknown>, position: ParsedPosition | undefined): void {
    const { state } = this
    // Until a replay is complete, live messages are for other subscriptions; this one gets them in the next page.
    if (state === 'closed' || (state === 'pending' && !message.replayed) || !this.resume.advance(position)) return
    if (this.#pages) this.#pages = { ...this.#pages, replayed: this.#pages.replayed + 1 }
    if (!this.#loader?.buffer(message)) this.#handOver(message)
  }

  /** Ends the subscription. Readers get the buffered messages, then the error, unless the app itself ended it. */
  close(error?: WebMQError, isWanted = !error): void {
    this.options.signal?.removeEventListener('abort', this.#onAbort)
    if (this.state === 'closed') return
    this.state = 'closed'
    this.#ready.reject(error ?? new WebMQError('E_CLOSED', { detail: this.pattern }))
    this.#buffer?.end(isWanted ? undefined : error)
    this.#loader?.stop()
    if (error && !isWanted) this.#emitter.emit('error', error)
    this.#emitter.emit('closed', undefined)
  }

  readonly #onAbort = (): void => {
    this.close(new WebMQError('E_ABORTED'), true)
    void this.context.remove(this)
  }

  #handOver(message: Message<unknown>): void {
    const { handler } = this
    if (handler)
      callSafely(
        () => handler(message.payload, message),
        (error) => this.context.onError(error, message),
      )
    const kept = this.#buffer?.push(message)
    if (kept === 'dropped') this.droppedCount++
    else if (kept === 'full') {
      const error = new WebMQError('E_BUFFER_OVERFLOW', { detail: this.pattern })
      this.close(error)
      this.context.onError(error, message)
      void this.context.remove(this)
    }
  }

  #createLoader(load: NonNullable<ListenOptions['load']>): Loader {
    const { pattern } = this
    const { bufferMaxMessages: maxMessages = BUFFER_MAX_MESSAGES } = this.options
    return new Loader(load, {
      maxMessages,
      backoffMs: (attempt) => this.context.backoffMs(attempt),
      onError: (error) => this.context.onError(error),
      onLoaded: (buffered, text) => {
        const loaded = parsePosition(text)
        for (const message of buffered) {
          if (this.state !== 'closed' && !isSeen(parsePosition(message.position), loaded)) this.#handOver(message)
        }
        this.resume.catchUp(loaded)
      },
      onOverflow: () => {
        const gap: Gap = { pattern, reason: 'limit' }
        this.#emitter.emit('gap', gap)
        this.context.onGap(gap)
        return gap
      },
    })
  }

  #createBuffer(): MessageBuffer<Message<unknown>> {
    const { bufferMaxMessages = BUFFER_MAX_MESSAGES, overflow = 'close' } = this.options
    const buffer = new MessageBuffer<Message<unknown>>(bufferMaxMessages, overflow)
    if (this.state === 'closed') buffer.end()
    this.#buffer = buffer
    return buffer
  }
}

/** @throws {WebMQError} `E_OPTION_INVALID`, `E_POSITION_INVALID`, naming the option. */
function startOf(options: ListenOptions): Start {
  const { bufferMaxMessages = 1, overflow = 'close' } = options
  if (!(bufferMaxMessages >= 1)) throw invalid('bufferMaxMessages')
  if (!/^(close|drop-(old|new)est)$/.test(overflow)) throw invalid('overflow')
  return rangeOf(options)
}

function deferred(): Deferred {
  let resolve: Deferred['resolve'] = () => undefined
  let reject: Deferred['reject'] = () => undefined
  const promise = new Promise<ListenResult>((onResolve, onReject) => {
    resolve = onResolve
    reject = onReject
  })
  // `ready` is optional: ignoring its rejection must not crash the process.
  promise.catch(() => undefined)
  return { promise, resolve, reject }
}
