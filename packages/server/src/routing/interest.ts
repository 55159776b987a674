import type { Route, Router } from '../patterns/router.js'
import type { Broker } from '../ports/broker.js'
import { isPromise, type MaybePromise } from '../ports/maybe-promise.js'

/** A bind that the broker has not answered yet. */
interface Binding {
  /** Settles when everybody who waits may go on. */
  readonly live: Promise<void>
  /** Listeners that wait for it, all of them in the router. */
  listenerCount: number
}

/**
 * What this node listens to: one group of the router and one binding of the broker per pattern, counted together over
 * connections and local listeners. A pattern that nobody listens with costs nothing.
 *
 * The broker is told one thing at a time about a pattern: a bind waits until an unbind before it is answered, for a broker that
 * answers in another order would be left with the wrong last word.
 */
export class Interest {
  readonly #router: Router
  readonly #broker: Pick<Broker, 'bind' | 'unbind'>
  readonly #onError: (error: unknown) => void
  /** Whoever else wants the pattern waits for the same answer. */
  readonly #binding = new Map<string, Binding>()
  readonly #unbinding = new Map<string, Promise<void>>()

  /** @param onError Called when the broker fails to end a binding, which nobody waits for. */
  constructor(router: Router, broker: Pick<Broker, 'bind' | 'unbind'>, onError: (error: unknown) => void) {
    this.#router = router
    this.#broker = broker
    this.#onError = onError
  }

  /**
   * Counts one more listener; live from when the answer is there.
   * @throws {WebMQError} `E_BROKER_UNAVAILABLE`; the listener is then not counted.
   */
  retain(pattern: string): MaybePromise<Route> {
    const isFirst = !this.#router.has(pattern)
    const route = this.#router.add(pattern)
    if (!isFirst) {
      const binding = this.#binding.get(pattern)
      if (binding === undefined) return route
      binding.listenerCount++
      return binding.live.then(() => route)
    }
    try {
      const bound = this.#bind(pattern)
      return isPromise(bound) ? this.#await(route, bound) : route
    } catch (error) {
      this.#router.remove(pattern)
      throw error
    }
  }

  /** Counts one listener less; one that {@link retain} has counted, so not before that was answered. */
  release(pattern: string): void {
    if (!this.#router.remove(pattern)) return
    try {
      const unbound = this.#broker.unbind(pattern)
      if (!isPromise(unbound)) return
      const ended = unbound.catch(this.#onError).then(() => {
        this.#unbinding.delete(pattern)
      })
      this.#unbinding.set(pattern, ended)
    } catch (error) {
      this.#onError(error)
    }
  }

  #bind(pattern: string): void | Promise<void> {
    const unbinding = this.#unbinding.get(pattern)
    return unbinding === undefined ? this.#broker.bind(pattern) : unbinding.then(() => this.#broker.bind(pattern))
  }

  #await(route: Route, bound: Promise<void>): Promise<Route> {
    const { pattern } = route
    const live = bound.then(
      () => {
        this.#binding.delete(pattern)
      },
      (error: unknown) => {
        // All at once: whoever came between two of them would take the pattern for bound.
        this.#binding.delete(pattern)
        for (let count = binding.listenerCount; count > 0; count--) this.#router.remove(pattern)
        throw error
      },
    )
    const binding: Binding = { live, listenerCount: 1 }
    this.#binding.set(pattern, binding)
    return live.then(() => route)
  }
}
