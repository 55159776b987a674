import { WebMQError } from 'webmq-client/protocol'
import type { Link } from './link.js'

/** A pattern of this node. */
interface Binding {
  readonly pattern: string
  referenceCount: number
  /** The link that it is live on. */
  liveOn: Link | undefined
  /** Those who wait for it to be live. */
  waiters: Waiter[]
}

interface Waiter {
  resolve(): void
  reject(error: unknown): void
}

/**
 * The patterns that a node is bound to, counted, over links that come and go: each link gets them all, and a bind resolves when the
 * pattern is live on the link of the moment.
 */
export class Bindings {
  readonly #timeoutMs: number
  readonly #byPattern = new Map<string, Binding>()
  #link: Link | undefined

  /** @param timeoutMs Time that a bind may take, from when it is asked for. */
  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs
  }

  get size(): number {
    return this.#byPattern.size
  }

  /** @throws {WebMQError} `E_BROKER_UNAVAILABLE` after the timeout, `E_BROKER_REFUSED`; it is then not counted. */
  bind(pattern: string): void | Promise<void> {
    const binding = this.#retain(pattern)
    if (binding.liveOn !== undefined && binding.liveOn === this.#link) return
    const live = this.#wait(binding)
    if (this.#link !== undefined && binding.referenceCount === 1)
      this.#bindOn(this.#link, binding).catch(() => undefined)
    return live
  }

  /** Ends one reference; with the last the pattern is unbound. One that is not bound is left alone. */
  unbind(pattern: string): void {
    const binding = this.#byPattern.get(pattern)
    if (binding === undefined || --binding.referenceCount > 0) return
    this.#byPattern.delete(pattern)
    // What cannot be unbound goes with its link, and is filtered until then.
    this.#link?.unbind(pattern).catch(() => undefined)
  }

  /**
   * Brings every pattern live on a new link; resolves when they are. Binds that come meanwhile go to the same link.
   * @throws what the link says when it does not take one of them.
   */
  async moveTo(link: Link): Promise<void> {
    this.#link = link
    await Promise.all([...this.#byPattern.values()].map((binding) => this.#bindOn(link, binding)))
  }

  /** The link is lost: nothing is live until the next. */
  lose(): void {
    this.#link = undefined
  }

  /** Ends all waiting. */
  refuseAll(error: WebMQError): void {
    for (const { waiters } of this.#byPattern.values()) for (const { reject } of waiters.splice(0)) reject(error)
  }

  #retain(pattern: string): Binding {
    const known = this.#byPattern.get(pattern)
    if (known !== undefined) {
      known.referenceCount++
      return known
    }
    const binding: Binding = { pattern, referenceCount: 1, liveOn: undefined, waiters: [] }
    this.#byPattern.set(pattern, binding)
    return binding
  }

  #wait(binding: Binding): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      const end = (settle: () => void) => {
        clearTimeout(timer)
        settle()
      }
      const fail = (error: unknown) =>
        end(() => {
          this.#release(binding)
          reject(error)
        })
      const waiter = { resolve: () => end(resolve), reject: fail }
      const timer = setTimeout(() => {
        binding.waiters = binding.waiters.filter((other) => other !== waiter)
        fail(new WebMQError('E_BROKER_UNAVAILABLE', { detail: `no answer within ${this.#timeoutMs} ms` }))
      }, this.#timeoutMs)
      timer.unref()
      binding.waiters.push(waiter)
    })
  }

  /** Takes back one reference to this binding, which may be an earlier one of its pattern. */
  #release(binding: Binding): void {
    if (this.#byPattern.get(binding.pattern) === binding) this.unbind(binding.pattern)
  }

  async #bindOn(link: Link, binding: Binding): Promise<void> {
    try {
      await link.bind(binding.pattern)
    } catch (error) {
      // Whatever else it is, the link is lost or will be: whoever waits, waits for the next one.
      const isFinal = error instanceof WebMQError && error.code === 'E_BROKER_REFUSED'
      if (isFinal) for (const { reject } of binding.waiters.splice(0)) reject(error)
      throw error
    }
    if (this.#link !== link) return
    binding.liveOn = link
    for (const { resolve } of binding.waiters.splice(0)) resolve()
  }
}
