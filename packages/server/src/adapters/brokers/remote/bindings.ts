import { WebMQError } from 'webmq-client/protocol'
import { type Deferred, deferred } from '../../../kernel/base/deferred.js'
import { within } from '../../../kernel/base/within.js'
import type { Link } from './link.js'

interface Binding {
  readonly pattern: string
  /** Settles when the pattern is live; `undefined` when nobody waits for that. */
  live: Deferred<void> | undefined
}

/**
 * The patterns of a node, kept across links. Each new link gets them all. A bind resolves when the pattern is live on
 * the current link.
 */
export class Bindings {
  readonly #timeoutMs: number
  readonly #byPattern = new Map<string, Binding>()
  #link: Link | undefined

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs
  }

  /**
   * @throws {WebMQError} `E_BROKER_UNAVAILABLE` after the timeout, `E_BROKER_REFUSED`; the pattern is then not bound.
   */
  async bind(pattern: string): Promise<void> {
    const live = deferred()
    const binding: Binding = { pattern, live }
    this.#byPattern.set(pattern, binding)
    if (this.#link !== undefined) this.#bindOn(this.#link, binding).catch(() => undefined)
    try {
      if (await within(live.promise, this.#timeoutMs)) return
      throw new WebMQError('E_BROKER_UNAVAILABLE', { detail: `no answer within ${this.#timeoutMs} ms` })
    } catch (error) {
      // The pattern may have been unbound and bound again.
      if (this.#byPattern.get(pattern) === binding) this.unbind(pattern)
      throw error
    } finally {
      binding.live = undefined
    }
  }

  /** Binds a pattern on every link that follows. Nobody waits for it. */
  keep(pattern: string): void {
    this.#byPattern.set(pattern, { pattern, live: undefined })
  }

  /** Does nothing for a pattern that is not bound. */
  unbind(pattern: string): void {
    if (!this.#byPattern.delete(pattern)) return
    // If this fails, the binding ends with its link; its messages are surplus until then.
    this.#link?.unbind(pattern).catch(() => undefined)
  }

  /**
   * Binds every pattern on a new link; resolves when all are live. Later binds use the same link.
   * @throws the link's error when it refuses a pattern.
   */
  async moveTo(link: Link): Promise<void> {
    this.#link = link
    await Promise.all([...this.#byPattern.values()].map((binding) => this.#bindOn(link, binding)))
  }

  /** The link is lost: no pattern is live until the next link. */
  lose(): void {
    this.#link = undefined
  }

  refuseAll(error: WebMQError): void {
    for (const binding of [...this.#byPattern.values()]) binding.live?.reject(error)
  }

  async #bindOn(link: Link, binding: Binding): Promise<void> {
    try {
      await link.bind(binding.pattern)
    } catch (error) {
      // After any other error the link is lost: the bind waits for the next link.
      if (error instanceof WebMQError && error.code === 'E_BROKER_REFUSED') binding.live?.reject(error)
      throw error
    }
    if (this.#link === link) binding.live?.resolve()
  }
}
