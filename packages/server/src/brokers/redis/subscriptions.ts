import { SubscriptionCover } from '../remote/cover.js'
import { GlobBudget } from './glob-budget.js'
import { isExact, subscriptionPatternsOf } from './patterns.js'

/** How {@link RedisSubscriptions} subscribes; as in {@link SubscriptionCoverOptions}. */
export interface RedisSubscriptionsOptions {
  subscribe(pattern: string): Promise<void>
  unsubscribe(pattern: string): Promise<void>
}

/** The subscriptions at one Redis: those that the bound patterns need, with a bounded number of globs. */
export class RedisSubscriptions {
  readonly #cover: SubscriptionCover
  /** Broader patterns that replace many globs. Each promise resolves to whether Redis allows the pattern. */
  readonly #broader = new Map<string, Promise<boolean>>()
  readonly #budget = new GlobBudget({
    broaden: (pattern) => {
      // If it is refused, or the link is lost, the narrower ones stay.
      const isBound = this.#cover.bind(pattern).then(
        () => true,
        () => false,
      )
      this.#broader.set(pattern, isBound)
    },
    narrow: (pattern) => void this.#narrow(pattern),
  })

  constructor({ subscribe, unsubscribe }: RedisSubscriptionsOptions) {
    this.#cover = new SubscriptionCover({ subscriptionsOf: subscriptionPatternsOf, subscribe, unsubscribe })
  }

  /**
   * Resolves when everything that the pattern matches arrives.
   * @throws {WebMQError} `E_BROKER_REFUSED` when Redis does not allow it; the pattern is then not bound.
   */
  async bind(pattern: string): Promise<void> {
    for (const glob of globsOf(pattern)) this.#budget.add(glob)
    try {
      await this.#cover.bind(pattern)
    } catch (error) {
      for (const glob of globsOf(pattern)) this.#budget.delete(glob)
      throw error
    }
  }

  async unbind(pattern: string): Promise<void> {
    const unbound = this.#cover.unbind(pattern)
    for (const glob of globsOf(pattern)) this.#budget.delete(glob)
    await unbound
  }

  async #narrow(pattern: string): Promise<void> {
    const isBound = this.#broader.get(pattern)
    this.#broader.delete(pattern)
    // Fails when the link is lost, or a narrower pattern is refused: then the broader one stays.
    if (await isBound) await this.#cover.unbind(pattern).catch(() => undefined)
  }
}

function globsOf(pattern: string): readonly string[] {
  return subscriptionPatternsOf(pattern).filter((each) => !isExact(each))
}
