import { PatternIndex } from './pattern-index.js'

export interface SubscriptionCoverOptions {
  /**
   * The subscriptions that a bound pattern needs. Each is given as a subscription pattern: a pattern that matches every
   * key that the subscription brings. It has at most one `#`; in a run of wildcards the `*`s come first.
   */
  subscriptionsOf(pattern: string): readonly string[]
  /** Resolves when the subscription is live. Rejects when the broker does not allow it, or the link is lost. */
  subscribe(subscription: string): Promise<void>
  /** Called once `subscribe` has resolved. A `subscribe` of the same pattern may follow before it resolves. */
  unsubscribe(subscription: string): Promise<void>
}

/** Kept while `ending` is `undefined`. Otherwise it ends as soon as narrower subscriptions are live. */
interface Subscription {
  readonly live: Promise<void>
  /** Identifies one attempt to end it. An attempt gives up when it finds another one here, or none. */
  ending: symbol | undefined
}

/**
 * Makes the subscriptions that the bound patterns need, and none that another one contains: a broker sends one copy of
 * a message per matching subscription.
 *
 *     bind('a.b')     subscribes a.b
 *     bind('a.#')     subscribes a.#; when it is live, unsubscribes a.b
 *     bind('a.c')     subscribes nothing: a.# brings it
 *     unbind('a.#')   subscribes a.b and a.c; when they are live, unsubscribes a.#
 *
 * So a change misses no message. Copies arrive during a change, and where two subscriptions overlap and neither
 * contains the other (`a.*` and `*.b`).
 *
 * Calls may overlap. Calls for one pattern alternate between `bind` and `unbind`.
 */
export class SubscriptionCover {
  readonly #options: SubscriptionCoverOptions
  /** Number of bound patterns that need each subscription. */
  readonly #neededCounts = new Map<string, number>()
  readonly #needed = new PatternIndex()
  /** Subscriptions that were requested and not ended, live or not yet. */
  readonly #subscriptions = new Map<string, Subscription>()
  readonly #kept = new PatternIndex()

  constructor(options: SubscriptionCoverOptions) {
    this.#options = options
  }

  /**
   * Resolves when everything that the pattern matches arrives.
   * @throws what `subscribe` rejected with; the pattern is then not bound.
   */
  async bind(pattern: string): Promise<void> {
    const subscriptions = this.#options.subscriptionsOf(pattern)
    try {
      await Promise.all(subscriptions.map((each) => this.#need(each)))
    } catch (error) {
      // `error` is the cause; an error of unbind would add nothing.
      await this.unbind(pattern).catch(() => undefined)
      throw error
    }
  }

  /** Resolves when no message arrives only because of this pattern. */
  async unbind(pattern: string): Promise<void> {
    await Promise.all(this.#options.subscriptionsOf(pattern).map((each) => this.#release(each)))
  }

  #need(subscription: string): Promise<void> {
    this.#neededCounts.set(subscription, (this.#neededCounts.get(subscription) ?? 0) + 1)
    this.#needed.add(subscription)
    return this.#cover(subscription)
  }

  async #release(subscription: string): Promise<void> {
    const count = this.#neededCounts.get(subscription) ?? 0
    if (count > 1) {
      this.#neededCounts.set(subscription, count - 1)
      return
    }
    this.#neededCounts.delete(subscription)
    this.#needed.delete(subscription)
    if (this.#kept.has(subscription)) await this.#end(subscription)
  }

  /** Resolves when this subscription is live, or a broader one. */
  async #cover(subscription: string): Promise<void> {
    const broader = this.#kept.containing(subscription)
    if (broader === undefined) return this.#keep(subscription)
    try {
      await this.#subscriptions.get(broader)?.live
    } catch (error) {
      // The broader subscription was refused and dropped; the narrower one may still be allowed.
      if (this.#kept.has(broader) || !this.#neededCounts.has(subscription)) throw error
      await this.#cover(subscription)
    }
  }

  async #keep(pattern: string): Promise<void> {
    let subscription = this.#subscriptions.get(pattern)
    if (subscription === undefined) {
      subscription = { live: this.#options.subscribe(pattern), ending: undefined }
      this.#subscriptions.set(pattern, subscription)
    }
    this.#kept.add(pattern)
    subscription.ending = undefined
    try {
      await subscription.live
    } catch (error) {
      if (this.#subscriptions.get(pattern) === subscription) {
        this.#subscriptions.delete(pattern)
        this.#kept.delete(pattern)
      }
      throw error
    }
    if (!this.#kept.has(pattern)) return
    for (const narrower of this.#kept.within(pattern)) {
      // Fails when the link is lost, which `LinkEvents.lost` reports.
      this.#end(narrower).catch(() => undefined)
    }
  }

  /** Ends a subscription once other subscriptions bring everything that is still needed. */
  async #end(pattern: string): Promise<void> {
    const subscription = this.#subscriptions.get(pattern)
    if (subscription === undefined) return
    const ending = Symbol(pattern)
    this.#kept.delete(pattern)
    subscription.ending = ending
    try {
      await Promise.all([
        subscription.live,
        ...this.#needed
          .within(pattern)
          .sort(byBreadth)
          .map((each) => this.#cover(each)),
      ])
    } catch (error) {
      if (subscription.ending === ending && this.#subscriptions.get(pattern) === subscription) {
        subscription.ending = undefined
        this.#kept.add(pattern)
      }
      throw error
    }
    if (subscription.ending !== ending) return
    this.#subscriptions.delete(pattern)
    await this.#options.unsubscribe(pattern)
  }
}

function byBreadth(one: string, other: string): number {
  return Number(isExact(one)) - Number(isExact(other)) || one.length - other.length
}

function isExact(pattern: string): boolean {
  return !pattern.includes('*') && !pattern.includes('#')
}
