import type { Broker } from './broker.js'
import { isPromise, type MaybePromise } from './maybe-promise.js'
import type { Route, Router } from './router.js'

/**
 * What this node listens to: one group of the router and one binding of the broker per pattern, counted together over
 * connections and local listeners. A pattern that nobody listens with costs nothing.
 */
export class Interest {
  readonly #router: Router
  readonly #broker: Pick<Broker, 'bind' | 'unbind'>
  readonly #onError: (error: unknown) => void
  /** Bindings that the broker has not confirmed yet: whoever else wants the pattern waits for the same answer. */
  readonly #binding = new Map<string, Promise<void>>()

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
      return binding === undefined ? route : this.#confirm(route, binding)
    }
    try {
      const bound = this.#broker.bind(pattern)
      if (!isPromise(bound)) return route
      const binding = bound.finally(() => {
        if (this.#binding.get(pattern) === binding) this.#binding.delete(pattern)
      })
      this.#binding.set(pattern, binding)
      return this.#confirm(route, binding)
    } catch (error) {
      this.#router.remove(pattern)
      throw error
    }
  }

  /** Counts one listener less. */
  release(pattern: string): void {
    if (!this.#router.remove(pattern)) return
    try {
      const unbound = this.#broker.unbind(pattern)
      if (isPromise(unbound)) unbound.catch(this.#onError)
    } catch (error) {
      this.#onError(error)
    }
  }

  async #confirm(route: Route, binding: Promise<void>): Promise<Route> {
    try {
      await binding
      return route
    } catch (error) {
      this.#router.remove(route.pattern)
      throw error
    }
  }
}
