import type { Subscription } from '@nats-io/transport-node'
import { Router } from '../../patterns/router.js'
import type { GroupId } from '../../ports/transport.js'
import { SubscriptionCover } from '../remote/cover.js'
import type { RoundWaiter } from './rounds.js'
import { type NatsSubjects, reachesOf } from './subjects.js'

/** What a link subscribes to. */
export interface NatsSubscription {
  /** Greater than that of any older one. */
  readonly id: number
  readonly reach: string
  readonly subject: string
  /** The key, when it brings but one. */
  readonly onlyKey: string | undefined
  /** Waits for it to be live. */
  readonly waiter: RoundWaiter
  /** While the server is known to have it and has not been told to end it. */
  group: GroupId | undefined
}

/** What {@link NatsSubscriptions} needs of its link. */
export interface SubscriptionWire {
  /** Subscribes behind everything that was sent before; the messages are those of `subscription`. */
  subscribe(subject: string, subscription: NatsSubscription): Subscription
  /** Tells the waiter once the server has read what was sent before. */
  wait(waiter: RoundWaiter): void
}

interface Active {
  readonly subscription: NatsSubscription
  /** The library's. */
  readonly handle: Subscription
}

/** The subscriptions of one connection: those that a node's patterns need, and no others. */
export class NatsSubscriptions {
  readonly #subjects: NatsSubjects
  readonly #wire: SubscriptionWire
  readonly #cover: SubscriptionCover
  readonly #byReach = new Map<string, Active>()
  readonly #liveReaches = new Router()
  readonly #liveByGroup = new Map<GroupId, NatsSubscription>()
  #lastId = 0
  /** Those that may bring messages: the server has them, or has not yet said that it has ended them. */
  #openCount = 0

  constructor(subjects: NatsSubjects, wire: SubscriptionWire) {
    this.#subjects = subjects
    this.#wire = wire
    this.#cover = new SubscriptionCover({
      subscriptionsOf: reachesOf,
      subscribe: (reach) => this.#subscribe(reach),
      unsubscribe: (reach) => this.#unsubscribe(reach),
    })
  }

  bind(pattern: string): Promise<void> {
    return this.#cover.bind(pattern)
  }

  unbind(pattern: string): Promise<void> {
    return this.#cover.unbind(pattern)
  }

  /** Whether one of them brings this key. */
  isLive(key: string): boolean {
    return this.#liveReaches.match(key).length > 0
  }

  /** The one of a subject that is not live yet. */
  awaited(subject: string): NatsSubscription | undefined {
    for (const { subscription } of this.#byReach.values()) {
      if (subscription.subject === subject && subscription.group === undefined) return subscription
    }
    return undefined
  }

  /**
   * Whether this is the copy that counts of a message without a source, which tells no copies apart: that of the oldest live
   * subscription. While subscriptions change, a second one may come.
   */
  isFirstCopy({ id }: NatsSubscription, key: string): boolean {
    if (this.#openCount === 1) return true
    return !this.#liveReaches.match(key).some((group) => (this.#liveByGroup.get(group)?.id ?? id) < id)
  }

  #subscribe(reach: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const subject = this.#subjects.ofReach(reach)
      const isExact = !reach.includes('*') && !reach.includes('#')
      const waiter: RoundWaiter = {
        done: () => {
          this.#goLive(subscription)
          resolve()
        },
        failed: (cause) => {
          this.#leave(subscription)
          this.#openCount--
          handle.unsubscribe()
          reject(cause)
        },
      }
      const id = ++this.#lastId
      const onlyKey = isExact ? reach : undefined
      const subscription: NatsSubscription = { id, reach, subject, onlyKey, waiter, group: undefined }
      const handle = this.#wire.subscribe(subject, subscription)
      this.#openCount++
      this.#byReach.set(reach, { subscription, handle })
      this.#wire.wait(waiter)
    })
  }

  /** Draining is to unsubscribe and to take in what comes until the server has read that. */
  async #unsubscribe(reach: string): Promise<void> {
    const active = this.#byReach.get(reach)
    if (active === undefined) return
    this.#leave(active.subscription)
    await active.handle.drain()
    this.#openCount--
  }

  #goLive(subscription: NatsSubscription): void {
    // Refused meanwhile.
    if (this.#byReach.get(subscription.reach)?.subscription !== subscription) return
    subscription.group = this.#liveReaches.add(subscription.reach).group
    this.#liveByGroup.set(subscription.group, subscription)
  }

  #leave(subscription: NatsSubscription): void {
    if (this.#byReach.get(subscription.reach)?.subscription === subscription) this.#byReach.delete(subscription.reach)
    if (subscription.group === undefined) return
    this.#liveReaches.remove(subscription.reach)
    this.#liveByGroup.delete(subscription.group)
    subscription.group = undefined
  }
}
