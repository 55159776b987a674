import { Router } from '../../patterns/router.js'
import type { GroupId } from '../../ports/transport.js'
import { SubscriptionCover } from '../remote/cover.js'
import type { RoundWaiter } from './rounds.js'
import { type NatsSubjects, reachesOf } from './subjects.js'

/** What a link subscribes to. */
export interface NatsSubscription {
  readonly id: number
  readonly reach: string
  readonly subject: string
  /** The key, when there is but one that it brings. */
  readonly onlyKey: string | undefined
  /** Who waits for it to be live. */
  readonly waiter: RoundWaiter
  /** While the server is known to have it and has not been told to end it. */
  group: GroupId | undefined
}

/** Sends a line, and tells the waiter once the server has read it. */
export type SendNatsLine = (line: string, waiter: RoundWaiter) => void

/** The subscriptions of one connection: those that a node's patterns need, and no others. */
export class NatsSubscriptions {
  readonly #subjects: NatsSubjects
  readonly #send: SendNatsLine
  readonly #cover: SubscriptionCover
  /** Those that the server has, or has not yet said that it has ended. */
  readonly #byId = new Map<number, NatsSubscription>()
  readonly #byReach = new Map<string, NatsSubscription>()
  readonly #liveReaches = new Router()
  readonly #liveByGroup = new Map<GroupId, NatsSubscription>()
  #lastId: number

  /** @param lastId Ids begin after it. */
  constructor(subjects: NatsSubjects, lastId: number, send: SendNatsLine) {
    this.#lastId = lastId
    this.#subjects = subjects
    this.#send = send
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

  /** By the number that its messages bear. */
  get(id: number): NatsSubscription | undefined {
    return this.#byId.get(id)
  }

  /** Whether one of them brings this key. */
  isLive(key: string): boolean {
    return this.#liveReaches.match(key).length > 0
  }

  /** The one of a subject that is not live yet. */
  awaited(subject: string): NatsSubscription | undefined {
    for (const subscription of this.#byId.values()) {
      if (subscription.subject === subject && subscription.group === undefined) return subscription
    }
    return undefined
  }

  /**
   * Whether this is the copy that counts of a message that bears no mark by which copies are known: that of the oldest live
   * subscription. While subscriptions change, a second one may come.
   */
  isFirstCopy({ id }: NatsSubscription, key: string): boolean {
    if (this.#byId.size === 1) return true
    return !this.#liveReaches.match(key).some((group) => (this.#liveByGroup.get(group)?.id ?? id) < id)
  }

  #subscribe(reach: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const id = ++this.#lastId
      const subject = this.#subjects.ofReach(reach)
      const isExact = !reach.includes('*') && !reach.includes('#')
      const waiter: RoundWaiter = {
        done: () => {
          this.#goLive(subscription)
          resolve()
        },
        failed: (cause) => {
          this.#leave(subscription)
          this.#byId.delete(id)
          reject(cause)
        },
      }
      const onlyKey = isExact ? reach : undefined
      const subscription: NatsSubscription = { id, reach, subject, onlyKey, waiter, group: undefined }
      this.#byId.set(id, subscription)
      this.#byReach.set(reach, subscription)
      this.#send(`SUB ${subject} ${id}\r\n`, waiter)
    })
  }

  #unsubscribe(reach: string): Promise<void> {
    const subscription = this.#byReach.get(reach)
    if (subscription === undefined) return Promise.resolve()
    this.#leave(subscription)
    return new Promise((resolve, failed) => {
      const done = () => {
        this.#byId.delete(subscription.id)
        resolve()
      }
      this.#send(`UNSUB ${subscription.id}\r\n`, { done, failed })
    })
  }

  #goLive(subscription: NatsSubscription): void {
    // Refused meanwhile.
    if (this.#byReach.get(subscription.reach) !== subscription) return
    subscription.group = this.#liveReaches.add(subscription.reach).group
    this.#liveByGroup.set(subscription.group, subscription)
  }

  #leave(subscription: NatsSubscription): void {
    if (this.#byReach.get(subscription.reach) === subscription) this.#byReach.delete(subscription.reach)
    if (subscription.group === undefined) return
    this.#liveReaches.remove(subscription.reach)
    this.#liveByGroup.delete(subscription.group)
    subscription.group = undefined
  }
}
