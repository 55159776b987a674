import { WebMQError } from 'webmq-client/protocol'

/** Binds patterns, in the order of the calls. */
export interface PatternBinder {
  bind(pattern: string): Promise<void>
  unbind(pattern: string): Promise<void>
}

const EVERYTHING = '#'

/**
 * Binds patterns one by one while they are few, and everything when they are many. The node then drops what nobody wants.
 *
 * RabbitMQ takes 0.5 to 2 ms for a binding, one after the other for all of its nodes, and as long again to remove it. With
 * tens of thousands, for example one per user, a node would take minutes to come back and would hold up the others.
 */
export class BoundedBindings implements PatternBinder {
  readonly #binder: PatternBinder
  readonly #maxCount: number
  readonly #wanted = new Set<string>()
  /** Bound one by one, or about to be. */
  readonly #exact = new Set<string>()
  /** Resolves when everything is bound; `undefined` while patterns are bound one by one. */
  #everything: Promise<void> | undefined
  /** The broker forbids it (topic permissions). */
  #isForbidden = false

  /** @param maxCount Patterns that are bound one by one. From more it returns to that when they are half as many. */
  constructor(binder: PatternBinder, maxCount: number) {
    this.#binder = binder
    this.#maxCount = maxCount
  }

  bind(pattern: string): Promise<void> {
    this.#wanted.add(pattern)
    if (this.#wanted.size <= this.#maxCount && this.#everything === undefined) return this.#bindExact(pattern)
    return this.#bindWide(pattern)
  }

  unbind(pattern: string): Promise<void> {
    this.#wanted.delete(pattern)
    const isBound = this.#exact.delete(pattern) && !(pattern === EVERYTHING && this.#everything !== undefined)
    const unbound = isBound ? this.#binder.unbind(pattern) : Promise.resolve()
    if (this.#everything !== undefined && this.#wanted.size * 2 <= this.#maxCount) this.#narrow()
    return unbound
  }

  #bindExact(pattern: string): Promise<void> {
    this.#exact.add(pattern)
    return this.#binder.bind(pattern)
  }

  async #bindWide(pattern: string): Promise<void> {
    if (this.#isForbidden) return await this.#bindExact(pattern)
    this.#everything ??= this.#binder.bind(EVERYTHING)
    try {
      await this.#everything
    } catch (error) {
      if (!(error instanceof WebMQError) || error.code !== 'E_BROKER_REFUSED') throw error
      this.#isForbidden = true
      this.#everything = undefined
      if (this.#wanted.has(pattern)) await this.#bindExact(pattern)
    }
  }

  /** Binds one by one what is left, then unbinds everything else. */
  #narrow(): void {
    this.#everything = undefined
    const binds = [...this.#wanted]
      .filter((pattern) => !this.#exact.has(pattern))
      .map((pattern) => this.#bindExact(pattern))
    Promise.all(binds)
      .then(async () => {
        if (this.#everything === undefined && !this.#wanted.has(EVERYTHING)) await this.#binder.unbind(EVERYTHING)
      })
      // A failure leaves everything bound: more than is wanted. The loss of the link is reported where it is watched.
      .catch(() => undefined)
  }
}
