import { WebMQError } from '../../protocol/errors.js'
import { callSafely } from '../events/call-safely.js'
import { Emitter } from '../events/emitter.js'
import type { ClientError, Gap } from '../events/events.js'
import type { ResolvedOptions } from '../options.js'
import type { ListenOptions, ListenResult, Message, Subscription, SubscriptionEvents } from '../types.js'
import { rangeOf } from './range.js'
import { type Receiver, type Receiving, receiverOf } from './receiver.js'
import type { Start } from './requests.js'
import { ResumePoint } from './resume-point.js'

/** The subscription's access to the registry. */
export interface SubscriptionContext {
  readonly options: ResolvedOptions
  /** Removes the subscription from the registry. Resolves when the server knows. */
  remove(subscription: LiveSubscription): Promise<void>
  /** Listens again from the subscription's position, if there is a connection. */
  again(subscription: LiveSubscription): void
  report(error: ClientError): void
  onGap(gap: Gap): void
}

/** Implements a {@link Subscription}: tracks its position, and passes messages to its receiver. */
export class LiveSubscription extends ResumePoint implements Subscription {
  readonly pattern: string
  readonly receiver: Receiver
  /** Replaced when the subscription moves to another client. */
  context: SubscriptionContext
  readonly options: ListenOptions
  readonly #emitter = new Emitter<SubscriptionEvents>((error) => this.#report(error))
  readonly #start: Start
  #resolve!: (result: ListenResult) => void
  #reject!: (error: WebMQError) => void
  /** Whether the app was told that there is no room for this listen. */
  #isHeld = false
  /** Sum of the replay's pages so far, between the first and the last page [P-6.9]. */
  #pages: { -readonly [K in keyof ListenResult]: ListenResult[K] } | undefined
  state!: Subscription['state']
  ready!: Promise<ListenResult>

  constructor(
    pattern: string,
    receiving: Receiving<unknown>,
    options: ListenOptions | undefined,
    context: SubscriptionContext,
  ) {
    super()
    this.pattern = pattern
    this.receiver = receiverOf(receiving)
    this.options = { ...this.receiver.options, ...options }
    this.context = context
    this.#start = rangeOf(this.options)
    this.position = this.options.since
    this.reopen()
    this.receiver.attach?.({
      ...context.options,
      subscription: this,
      report: (error, message) => this.#report(error, message),
      gap: (reason) => {
        const gap = { pattern, reason }
        this.#emitter.emit('gap', gap)
        this.context.onGap(gap)
        return gap
      },
      again: (position) => {
        this.position = position
        // Otherwise the next connection, or page, begins there.
        if (this.state !== 'active') return
        this.reopen()
        this.context.again(this)
      },
      fail: (error, message) => {
        this.#report(error, message)
        void this.#quit(error, false)
      },
      skip: (position) => this.skip(position),
    })
    const { signal } = this.options
    if (signal?.aborted) this.end(new WebMQError('E_ABORTED'), true)
    else signal?.addEventListener('abort', this.#onAbort)
  }

  /** Where a replay begins: at the last handled position or, until the first acknowledgement, where the app asked. */
  get start(): Start {
    const { position, wasLive } = this
    const { wantsState: state } = this.receiver
    if (position && (this.recovers || !wasLive)) return { since: position, state }
    return wasLive ? { state } : { ...this.#start, state }
  }

  /** Whether it gets what it has missed. */
  get recovers(): boolean {
    return this.options.recover !== false
  }

  on<E extends keyof SubscriptionEvents>(event: E, handler: (event: SubscriptionEvents[E]) => unknown): () => void {
    return this.#emitter.on(event, handler)
  }

  close(): Promise<void> {
    return this.#quit(new WebMQError('E_CLOSED', { detail: this.pattern }), true)
  }

  // In runtimes without `Symbol.dispose`, this is a method named "undefined" that nobody calls.
  [Symbol.dispose](): void {
    void this.close()
  }

  /**
   * The server has accepted the listen, with a page of the replay or all of it.
   * @param latest Position of the last live message before.
   */
  accept(page: ListenResult, isLast: boolean, latest: string | undefined, since?: string): void {
    const { gap } = page
    this.#isHeld = false
    const before = this.#pages ?? { ...page, replayed: 0 }
    const { replayed } = before
    // A page's messages are counted as they arrive: the connection may be lost before all of them are here.
    const sum = { ...page, recovered: before.recovered && page.recovered, gap: before.gap ?? gap, replayed }
    this.#pages = isLast ? undefined : sum
    if (isLast) {
      const result = { ...sum, replayed: replayed + page.replayed }
      this.state = 'active'
      this.live(latest)
      this.#resolve(result)
      this.#emitter.emit('ready', result)
    }
    if (gap) this.gap({ pattern: this.pattern, reason: gap, since })
    else this.#tell(() => this.receiver.accepted?.())
  }

  /** Everything of the replay has been delivered. */
  caughtUp(): void {
    if (this.state === 'active') this.#tell(() => this.receiver.caughtUp?.())
  }

  gap(gap: Gap): void {
    if (this.state === 'closed') return
    this.#emitter.emit('gap', gap)
    this.#tell(() => this.receiver.gap?.(gap))
  }

  /** The connection is lost. `latest` is the position of its last live message, of any pattern [P-8.7]. */
  down(latest: string | undefined): void {
    if (this.state === 'active') {
      this.advance(this.at(latest))
      this.reopen()
    }
    this.#tell(() => this.receiver.down?.())
  }

  /** It waits, again, for the server to accept it. */
  reopen(): void {
    this.state = 'pending'
    this.ready = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    // `ready` is optional: ignoring its rejection must not crash the process.
    this.ready.catch(() => undefined)
  }

  /** There is no room for it now: `ready` rejects, another one follows. Returns whether that is new to the app. */
  hold(error: WebMQError): boolean {
    if (this.#isHeld || this.state !== 'pending') return false
    this.#isHeld = true
    this.#reject(error)
    this.reopen()
    this.#emitter.emit('error', error)
    return true
  }

  /**
   * The client is closed.
   * @returns Whether it can be taken up again.
   */
  shut(error: WebMQError, isWanted: boolean): boolean {
    if (this.state === 'closed') return false
    this.#pages = undefined
    // Later: the app that called `listen` has no handlers yet.
    this.#end(error, isWanted, queueMicrotask)
    return !this.receiver.isSingleUse
  }

  /** Position up to which everything was handled; `undefined` if unknown. */
  handled(latest: string | undefined): string | undefined {
    const backlog = this.receiver.backlog?.()
    if (backlog) return backlog.position
    return this.state === 'active' ? this.at(latest) : this.position
  }

  /** Delivers a message, unless it was handled before. */
  deliver(message: Message<unknown>, size?: number): void {
    // Until a replay is complete, live messages are for other subscriptions; this one gets them in the next page.
    if (this.state !== 'active' && (this.state === 'closed' || !message.replayed)) return
    if (!this.advance(message.position)) return
    if (this.#pages) this.#pages.replayed++
    // Not `callSafely`, which takes a closure: this is the path of every message.
    try {
      const result = this.receiver.deliver(message, size)
      if (result instanceof Promise) result.catch((error: unknown) => this.#report(error, message))
    } catch (error) {
      this.#report(error, message)
    }
  }

  /** Ends the subscription. `isWanted`: the app itself has ended it. */
  end(error: WebMQError, isWanted: boolean): void {
    this.options.signal?.removeEventListener('abort', this.#onAbort)
    if (this.state !== 'closed') this.#end(error, isWanted, (tell) => tell())
  }

  #quit(error: WebMQError, isWanted: boolean): Promise<void> {
    this.end(error, isWanted)
    return this.context.remove(this)
  }

  #end(error: WebMQError, isWanted: boolean, call: (tell: () => void) => void): void {
    this.state = 'closed'
    this.#reject(error)
    this.#tell(() => this.receiver.close?.(isWanted ? undefined : error))
    call(() => {
      if (!isWanted) this.#emitter.emit('error', error)
      this.#emitter.emit('closed', undefined)
    })
  }

  #tell(call: () => unknown): void {
    callSafely(call, (error) => this.#report(error))
  }

  #report(error: unknown, message?: Message<unknown>): void {
    this.context.report({ error, pattern: this.pattern, key: message?.key })
  }

  readonly #onAbort = (): void => void this.#quit(new WebMQError('E_ABORTED'), true)
}
