import { PatternIndex } from '../../patterns/pattern-index.js'

/** What a {@link Cover} covers with. */
export interface CoverOptions {
  /**
   * The subscriptions that a pattern needs, each told by what it reaches: a pattern that matches every key that it brings, with the
   * `*`s of a run of wildcards before its `#`, of which there is one at most. One reach is one subscription.
   */
  reachesOf(pattern: string): readonly string[]
  /** Resolves when it is live. Rejects when the broker does not allow it, or the link is lost. */
  subscribe(reach: string): Promise<void>
  /** Called once `subscribe` has resolved. A `subscribe` of the same reach may follow before it resolves. */
  unsubscribe(reach: string): Promise<void>
}

interface Subscription {
  readonly live: Promise<void>
  /** Changes when it is to end, and when it is to stay after all: who waits to end it sees that it no longer should. */
  turn: number
}

/**
 * Makes the subscriptions that a node's patterns need, without those that are contained in another one: a broker sends a copy for
 * each that matches.
 *
 * Nothing is missed meanwhile: a narrower subscription ends once the broader one is live, and a broader one ends once the narrower
 * ones that it stood for are live. Until then, and where two overlap and none contains the other (`a.*` and `*.b`), copies come.
 *
 * Calls may overlap; those of one pattern alternate between `bind` and `unbind`.
 */
export class Cover {
  readonly #options: CoverOptions
  /** How many bound patterns need a reach. */
  readonly #counts = new Map<string, number>()
  /** Keys of `#counts`. */
  readonly #wanted = new PatternIndex()
  /** Keys of `#subscriptions`, without those that are about to end. */
  readonly #active = new PatternIndex()
  /** Live, about to be, or about to end. */
  readonly #subscriptions = new Map<string, Subscription>()

  constructor(options: CoverOptions) {
    this.#options = options
  }

  /**
   * Resolves when all that the pattern matches comes.
   * @throws what `subscribe` rejected with; the pattern is then not bound.
   */
  async bind(pattern: string): Promise<void> {
    const reaches = this.#options.reachesOf(pattern)
    try {
      await Promise.all(reaches.map((reach) => this.#want(reach)))
    } catch (error) {
      // It says nothing that `error` does not say.
      await this.unbind(pattern).catch(() => undefined)
      throw error
    }
  }

  /** Resolves when nothing comes any more because of the pattern alone. */
  async unbind(pattern: string): Promise<void> {
    await Promise.all(this.#options.reachesOf(pattern).map((reach) => this.#unwant(reach)))
  }

  #want(reach: string): Promise<void> {
    this.#counts.set(reach, (this.#counts.get(reach) ?? 0) + 1)
    this.#wanted.add(reach)
    return this.#cover(reach)
  }

  async #unwant(reach: string): Promise<void> {
    const count = this.#counts.get(reach) ?? 0
    if (count > 1) {
      this.#counts.set(reach, count - 1)
      return
    }
    this.#counts.delete(reach)
    this.#wanted.delete(reach)
    if (this.#active.has(reach)) await this.#end(reach)
  }

  /** Resolves when what the reach wants comes, over whichever subscription. */
  async #cover(reach: string): Promise<void> {
    const broader = this.#active.containing(reach)
    if (broader === undefined) return this.#keepLive(reach)
    try {
      await this.#subscriptions.get(broader)?.live
    } catch (error) {
      // Refused, and nobody's any more: what it was to stand for may be allowed.
      if (this.#active.has(broader) || !this.#counts.has(reach)) throw error
      await this.#cover(reach)
    }
  }

  async #keepLive(reach: string): Promise<void> {
    let subscription = this.#subscriptions.get(reach)
    if (subscription === undefined) {
      subscription = { live: this.#options.subscribe(reach), turn: 0 }
      this.#subscriptions.set(reach, subscription)
    }
    this.#active.add(reach)
    subscription.turn++
    try {
      await subscription.live
    } catch (error) {
      if (this.#subscriptions.get(reach) === subscription) {
        this.#subscriptions.delete(reach)
        this.#active.delete(reach)
      }
      throw error
    }
    if (!this.#active.has(reach)) return
    for (const narrower of this.#active.within(reach)) {
      // Fails when the link is lost, which others are told.
      this.#end(narrower).catch(() => undefined)
    }
  }

  /** Ends a subscription once all that it stands for comes over others. */
  async #end(reach: string): Promise<void> {
    const subscription = this.#subscriptions.get(reach)
    if (subscription === undefined) return
    this.#active.delete(reach)
    const turn = ++subscription.turn
    try {
      await Promise.all([
        subscription.live,
        ...this.#wanted
          .within(reach)
          .sort(byBreadth)
          .map((each) => this.#cover(each)),
      ])
    } catch (error) {
      if (subscription.turn === turn && this.#subscriptions.get(reach) === subscription) this.#active.add(reach)
      throw error
    }
    if (subscription.turn !== turn) return
    this.#subscriptions.delete(reach)
    await this.#options.unsubscribe(reach)
  }
}

/** Those that may contain others first. */
function byBreadth(one: string, other: string): number {
  return Number(isExact(one)) - Number(isExact(other)) || one.length - other.length
}

function isExact(reach: string): boolean {
  return !reach.includes('*') && !reach.includes('#')
}
