import type { Subscription } from '@nats-io/transport-node'
import { deferred, Router, SubscriptionCover } from 'webmq-server/brokers'
import type { GroupId } from 'webmq-server/ports'
import type { NatsSender, RoundWaiter } from './sender.js'
import { type NatsSubjects, subscriptionPatternsOf } from './subjects.js'

export interface NatsSubscription {
  /** Greater than the id of any older subscription. */
  readonly id: number
  /** The subscription pattern: matches the keys that the subscription brings. */
  readonly pattern: string
  readonly subject: string
  /** The key, if the subscription brings only one. */
  readonly onlyKey: string | undefined
  /** Waits until the subscription is live. */
  readonly waiter: RoundWaiter
  group: GroupId | undefined
}

interface Active {
  readonly subscription: NatsSubscription
  readonly handle: Subscription
}

/** What {@link NatsSubscriptions} use of their link. */
export interface SubscriptionsLink {
  readonly subjects: NatsSubjects
  readonly sender: NatsSender
  subscribe(subject: string, subscription: NatsSubscription): Subscription
}

/** The subscriptions of one connection: those that the bound patterns need. */
export class NatsSubscriptions {
  readonly #link: SubscriptionsLink
  readonly cover: SubscriptionCover
  readonly #byPattern = new Map<string, Active>()
  readonly #livePatterns = new Router()
  readonly #liveByGroup = new Map<GroupId, NatsSubscription>()
  #lastId = 0
  /** Number of subscriptions that may bring messages: not yet refused, or not yet ended by the server. */
  #openCount = 0

  constructor(link: SubscriptionsLink) {
    this.#link = link
    this.cover = new SubscriptionCover({
      subscriptionsOf: subscriptionPatternsOf,
      subscribe: (pattern) => this.#subscribe(pattern),
      unsubscribe: (pattern) => this.#unsubscribe(pattern),
    })
  }

  isLive(key: string): boolean {
    return this.#livePatterns.match(key).length > 0
  }

  /** The subscription to this subject that is not live yet. */
  awaited(subject: string): NatsSubscription | undefined {
    for (const { subscription } of this.#byPattern.values()) {
      if (subscription.subject === subject && subscription.group === undefined) return subscription
    }
    return undefined
  }

  /**
   * Whether this copy of a message counts: the one from the oldest live subscription. While subscriptions change,
   * copies may arrive, and without a source they cannot be told apart.
   */
  isFirstCopy({ id }: NatsSubscription, key: string): boolean {
    if (this.#openCount === 1) return true
    return !this.#livePatterns.match(key).some((group) => (this.#liveByGroup.get(group)?.id ?? id) < id)
  }

  async #subscribe(pattern: string): Promise<void> {
    const live = deferred()
    const subject = this.#link.subjects.ofSubscription(pattern)
    const isExact = !pattern.includes('*') && !pattern.includes('#')
    const waiter: RoundWaiter = {
      done: () => {
        this.#goLive(subscription)
        live.resolve()
      },
      failed: (cause) => {
        this.#leave(subscription)
        this.#openCount--
        handle.unsubscribe()
        live.reject(cause)
      },
    }
    const id = ++this.#lastId
    const onlyKey = isExact ? pattern : undefined
    const subscription: NatsSubscription = { id, pattern, subject, onlyKey, waiter, group: undefined }
    const handle = this.#link.subscribe(subject, subscription)
    this.#openCount++
    this.#byPattern.set(pattern, { subscription, handle })
    this.#link.sender.wait(waiter)
    await live.promise
  }

  /** `drain` unsubscribes. Messages still arrive until the server has read that. */
  async #unsubscribe(pattern: string): Promise<void> {
    const active = this.#byPattern.get(pattern)
    if (active === undefined) return
    this.#leave(active.subscription)
    await active.handle.drain()
    this.#openCount--
  }

  #goLive(subscription: NatsSubscription): void {
    // It may have been refused in the meantime.
    if (this.#byPattern.get(subscription.pattern)?.subscription !== subscription) return
    subscription.group = this.#livePatterns.add(subscription.pattern).group
    this.#liveByGroup.set(subscription.group, subscription)
  }

  #leave(subscription: NatsSubscription): void {
    if (this.#byPattern.get(subscription.pattern)?.subscription === subscription)
      this.#byPattern.delete(subscription.pattern)
    if (subscription.group === undefined) return
    this.#livePatterns.remove(subscription.pattern)
    this.#liveByGroup.delete(subscription.group)
    subscription.group = undefined
  }
}
