import { checkPattern } from '../checks.js'
import type { Positions } from '../client-options.js'
import { WebMQError } from '../protocol/errors.js'
import { matches } from '../protocol/matching.js'
import type { ServerMessage } from '../protocol/messages.js'
import { decodePayload } from '../publishing/payload.js'
import type { ListenOptions, Message } from '../types.js'
import { Asking, type AskingContext } from './asking.js'
import { isActive, isLive, type Listen } from './listen.js'
import type { Receiving } from './receiver.js'
import type { ReplayTarget } from './replays.js'
import { LiveSubscription, type SubscriptionContext } from './subscription.js'

type From<V extends ServerMessage['verb']> = Extract<ServerMessage, { verb: V }>

/** Limit of the keys whose subscriptions are kept. Limits memory when keys contain ids. */
const MAX_KNOWN_KEYS = 1_024

/** The registry of subscriptions. Listens again after a reconnect, and reports gaps. */
export class Listens {
  readonly #listens = new Map<string, Listen>()
  readonly #context: SubscriptionContext & AskingContext
  readonly #asking: Asking
  readonly #saved: Positions | undefined
  /** Subscriptions by key, for the next message with it. Emptied when any subscription comes or goes. */
  readonly #targets = new Map<string, readonly LiveSubscription[]>()
  /** Position of the last live message. Earlier messages of a listen that was live before it have arrived [P-8.7]. */
  #latest: string | undefined

  constructor(context: Pick<AskingContext, 'options' | 'sender' | 'requests' | 'replays' | 'onGap' | 'onError'>) {
    const { options } = context
    this.#context = {
      ...context,
      remove: (gone) => this.#remove(gone),
      // An active subscription has a listen.
      again: (active) => this.#asking.ask(this.#listens.get(active.pattern) as Listen, [active]),
      latest: () => this.#latest,
      touch: () => this.#saved?.touch(),
      end: (pattern, subscriptions, error) => this.#end(pattern, subscriptions, error),
    }
    this.#asking = new Asking(this.#context)
    this.#saved = options.resume?.({
      name: typeof options.url === 'function' ? '' : `${options.url}`,
      collect: () =>
        [...this.#subscriptions()]
          .filter(({ recovers }) => recovers)
          .map((one) => [one.pattern, one.handledPosition(this.#latest)]),
      onError: (error) => context.onError({ error }),
    })
  }

  /**
   * Adds a subscription.
   * @param closedBy Why the client is closed. The subscription begins when it is opened.
   * @throws {WebMQError} `E_PATTERN_INVALID`, `E_OPTION_INVALID`, `E_POSITION_INVALID`; then nothing was added.
   */
  add(
    pattern: string,
    receiving: Receiving<unknown>,
    options?: ListenOptions,
    closedBy?: WebMQError,
  ): LiveSubscription {
    checkPattern(pattern)
    const subscription = new LiveSubscription(pattern, receiving, options, this.#context)
    if (subscription.state === 'closed') return subscription
    if (closedBy) {
      this.#context.onError({ error: closedBy, pattern })
      if (!subscription.shut(closedBy, false)) return subscription
    }
    // The first subscription of a pattern continues where the previous page stopped. Later ones join it.
    if (subscription.recovers && isLive(subscription.start) && !this.#of(pattern).some(isActive)) {
      subscription.resume.advance(this.#saved?.get(pattern))
    }
    this.#insert(subscription)
    return subscription
  }

  /** Takes the subscriptions of another client. They continue from where they stopped. */
  adopt(others: Listens): void {
    for (const subscription of others.#release()) {
      subscription.context = this.#context
      if (subscription.state === 'closed') subscription.reopen()
      this.#insert(subscription)
    }
  }

  get isEmpty(): boolean {
    return this.#listens.size === 0
  }

  #release(): readonly LiveSubscription[] {
    const subscriptions = [...this.#subscriptions()]
    this.down()
    this.#saved?.close()
    // Requests that are answered later find nothing here.
    for (const listen of this.#listens.values()) listen.subscriptions = []
    this.#listens.clear()
    this.#targets.clear()
    return subscriptions
  }

  #insert(subscription: LiveSubscription): void {
    const { pattern } = subscription
    const listen = this.#listens.get(pattern) ?? { pattern, subscriptions: [], failedAttempts: 0 }
    listen.subscriptions = [...listen.subscriptions, subscription]
    this.#listens.set(pattern, listen)
    this.#targets.clear()
    if (this.#context.sender.isLive) this.#asking.join(listen, subscription)
  }

  /** Ends the last subscription of this handler, or all of the pattern. Resolves when the server knows. */
  async unlisten(pattern: string, receiving?: unknown): Promise<void> {
    const subscriptions = this.#of(pattern)
    const gone = receiving
      ? subscriptions.filter(({ receiver }) => receiver === receiving || receiver.handler === receiving).slice(-1)
      : subscriptions
    await Promise.all(gone.map((subscription) => subscription.close()))
  }

  /** A connection is live: every subscription listens again, from where it stopped. */
  up(): void {
    for (const listen of this.#listens.values()) this.#asking.listen(listen)
  }

  /** The connection is lost. */
  down(): void {
    this.#asking.down()
    for (const listen of this.#listens.values()) {
      clearTimeout(listen.timer)
      for (const subscription of listen.subscriptions) subscription.suspend(this.#latest)
    }
  }

  /** The client is closed. Loops end; subscriptions with handlers wait for {@link Listens.open}. */
  close(error: WebMQError, isWanted: boolean): void {
    for (const subscription of this.#release()) if (subscription.shut(error, isWanted)) this.#insert(subscription)
  }

  /** The client is opened again. */
  open(): void {
    for (const subscription of this.#subscriptions()) subscription.reopen()
  }

  /** Every live message up to this position has arrived [P-9.7]. */
  advance(position: string | undefined): void {
    this.#latest = position ?? this.#latest
    this.#saved?.touch()
  }

  /** Passes a message to each receiver of each matching pattern, once. Cost for a known key: O(receivers). */
  deliver(message: From<'message'>): void {
    const { key, position, replayed } = message
    const replay = replayed ? this.#context.replays.current : undefined
    const targets = replayed ? replay?.targets : (this.#targets.get(key) ?? this.#match(key))
    if (targets && targets.length > 0) this.#handOver(targets, message)
    if (replay) this.#context.replays.passed(replay)
    // Last, because a handler may end the connection. Replays do not count: the log may be ahead of live messages.
    else if (position !== undefined && !replayed) this.#latest = position
    this.#saved?.touch()
  }

  #handOver(targets: readonly ReplayTarget[], received: From<'message'>): void {
    const { key, position, replayed, meta } = received
    let payload: unknown
    try {
      // A stream of bytes has no codec.
      payload = decodePayload(received.payload, meta?.stream ? undefined : this.#context.options.codec)
    } catch (cause) {
      this.#context.onError({ error: new WebMQError('E_PAYLOAD_INVALID', { detail: key, cause }), key })
      return
    }
    const message: Message<unknown> = { key, payload, position, replayed, ...meta }
    for (const target of targets) target.deliver(message, received.payload.length)
  }

  #match(key: string): readonly LiveSubscription[] {
    const found = [...this.#subscriptions()].filter(({ pattern }) => matches(pattern, key))
    if (this.#targets.size >= MAX_KNOWN_KEYS) this.#targets.clear()
    this.#targets.set(key, found)
    return found
  }

  /**
   * The server has ended a listen that a new token does not grant [P-5.5]. Pending subscriptions get their own answer.
   */
  revoked(pattern: string, error: WebMQError): void {
    this.#end(pattern, this.#of(pattern).filter(isActive), error)
  }

  /** The server has lost messages on their way to this connection. */
  gap({ pattern, reason }: From<'gap'>): void {
    const subscriptions = this.#of(pattern)
    const gap = { pattern, reason, since: subscriptions[0]?.resume.position }
    for (const subscription of subscriptions) subscription.gap(gap)
    this.#context.onGap(gap)
  }

  #of(pattern: string): readonly LiveSubscription[] {
    return this.#listens.get(pattern)?.subscriptions ?? []
  }

  *#subscriptions(): Iterable<LiveSubscription> {
    for (const { subscriptions } of this.#listens.values()) yield* subscriptions
  }

  #end(pattern: string, subscriptions: readonly LiveSubscription[], error: WebMQError): void {
    this.#context.onError({ error, pattern })
    for (const subscription of subscriptions) {
      subscription.finish(error, false)
      this.#forget(subscription)
    }
  }

  /** Removes a subscription. Returns whether it was the last of its pattern. */
  #forget(subscription: LiveSubscription): boolean {
    const listen = this.#listens.get(subscription.pattern)
    if (!listen?.subscriptions.includes(subscription)) return false
    listen.subscriptions = listen.subscriptions.filter((other) => other !== subscription)
    this.#targets.clear()
    if (listen.subscriptions.length > 0) return false
    this.#asking.forget(listen)
    return this.#listens.delete(listen.pattern)
  }

  async #remove(subscription: LiveSubscription): Promise<void> {
    const { pattern } = subscription
    if (!this.#forget(subscription)) return
    // Keep the position if the subscription was never live: frameworks end a subscription and start it again at once.
    if (subscription.resume.wasLive) this.#saved?.forget(pattern)
    if (this.#context.sender.isLive) await this.#asking.unlisten(pattern)
  }
}
