import { WebMQError } from 'webmq-client/protocol'
import { isPromise, type MaybePromise } from '../base/maybe-promise.js'
import type { Route, Router } from '../patterns/router.js'
import { DEFAULT_VARIANT, type Variant } from '../patterns/variant.js'
import type { Broker } from '../ports/broker.js'

export interface InterestContext {
  readonly router: Router
  readonly broker: Pick<Broker, 'bind' | 'unbind'>
  /** Memory that routed patterns may take, as the router estimates it; default: any. */
  readonly maxPatternBytes?: number
  /** Called when an unbind fails: nobody waits for its answer. */
  readonly onError: (error: unknown) => void
}

interface Binding {
  /** Settles with the broker's answer, for all listeners that wait. */
  readonly live: Promise<void>
  /** Variants of the listeners that wait for it, all of them in the router. */
  readonly waiting: Variant[]
}

/**
 * The patterns of this node. Counts the listeners of each, connections and local ones. Keeps one binding of the broker per
 * pattern, and one group of the router per pattern and variant.
 *
 * The broker gets one call at a time about a pattern. A bind waits until an unbind before it is answered: if a broker answered
 * them in another order, the wrong call would take effect last.
 */
export class Interest {
  readonly #context: InterestContext
  readonly #router: Router
  /** Further listeners of a pattern wait for the same answer. */
  readonly #binding = new Map<string, Binding>()
  readonly #unbinding = new Map<string, Promise<void>>()

  constructor(context: InterestContext) {
    this.#context = context
    this.#router = context.router
  }

  /**
   * Counts one more listener. The pattern is live when this returns or resolves.
   * @throws {WebMQError} `E_BROKER_UNAVAILABLE`, or `E_LISTEN_LIMIT` when the patterns of this node take too much memory;
   *   the listener is then not counted.
   */
  retain(pattern: string, variant: Variant = DEFAULT_VARIANT): MaybePromise<Route> {
    const { maxPatternBytes = Number.POSITIVE_INFINITY } = this.#context
    const isFirst = !this.#router.has(pattern)
    const isRouted = !isFirst && this.#router.find(pattern, variant) !== undefined
    if (!isRouted && this.#router.byteCount >= maxPatternBytes) {
      throw new WebMQError('E_LISTEN_LIMIT', { detail: 'the patterns of this server take as much memory as they may' })
    }
    const route = this.#router.add(pattern, variant)
    if (!isFirst) {
      const binding = this.#binding.get(pattern)
      if (binding === undefined) return route
      binding.waiting.push(variant)
      return binding.live.then(() => route)
    }
    try {
      const bound = this.#bind(pattern)
      return isPromise(bound) ? this.#await(route, bound) : route
    } catch (error) {
      this.#router.remove(pattern, variant)
      throw error
    }
  }

  /**
   * Counts one more listener of a pattern that is live. It is never refused: it takes the place of one of another variant,
   * which is released next.
   */
  retainLive(pattern: string, variant: Variant): Route {
    return this.#router.add(pattern, variant)
  }

  /** The route of a pattern that someone listens with, or has asked to. */
  routeOf(pattern: string, variant: Variant = DEFAULT_VARIANT): Route | undefined {
    return this.#router.find(pattern, variant)
  }

  /** Counts one listener less. Call it only after {@link retain} has been answered. */
  release(pattern: string, variant: Variant = DEFAULT_VARIANT): void {
    const { broker, onError } = this.#context
    if (!this.#router.remove(pattern, variant)) return
    try {
      const unbound = broker.unbind(pattern)
      if (!isPromise(unbound)) return
      const ended = unbound.catch(onError).then(() => {
        this.#unbinding.delete(pattern)
      })
      this.#unbinding.set(pattern, ended)
    } catch (error) {
      onError(error)
    }
  }

  #bind(pattern: string): void | Promise<void> {
    const { broker } = this.#context
    const unbinding = this.#unbinding.get(pattern)
    return unbinding === undefined ? broker.bind(pattern) : unbinding.then(() => broker.bind(pattern))
  }

  #await(route: Route, bound: Promise<void>): Promise<Route> {
    const { pattern, variant } = route
    const live = bound.then(
      () => {
        this.#binding.delete(pattern)
      },
      (error: unknown) => {
        // Remove all at once; a listener added in between would think the pattern is bound.
        this.#binding.delete(pattern)
        for (const each of binding.waiting) this.#router.remove(pattern, each)
        throw error
      },
    )
    const binding: Binding = { live, waiting: [variant] }
    this.#binding.set(pattern, binding)
    return live.then(() => route)
  }
}
