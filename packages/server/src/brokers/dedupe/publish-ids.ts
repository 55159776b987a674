import type { Accepted } from '../../ports/broker.js'
import { DedupeWindow, type DedupeWindowOptions } from '../../ports/dedupe-window.js'
import { accepted } from '../../ports/messages.js'

/**
 * Publishes a message id once within its window, even while the first publish is pending. A failed one may be repeated.
 */
export class PublishIds {
  readonly #window: DedupeWindow
  readonly #isOff: boolean
  readonly #pending = new Map<string, Promise<Accepted>>()

  constructor(options: DedupeWindowOptions) {
    this.#window = new DedupeWindow(options)
    this.#isOff = options.windowMs === 0 || options.maxIds === 0
  }

  /** Calls `publish`, or returns the earlier answer as a duplicate. */
  once(messageId: string, publish: () => Promise<Accepted> | Accepted): Promise<Accepted> | Accepted {
    if (this.#isOff) return publish()
    const nowMs = performance.now()
    if (this.#window.has(messageId, nowMs)) return accepted(this.#window.positionOf(messageId), true)
    const pending = this.#pending.get(messageId)
    if (pending !== undefined) return pending.then(({ position }) => accepted(position, true))
    const answer = publish()
    if (!(answer instanceof Promise)) {
      this.#window.remember(messageId, answer.position, nowMs)
      return answer
    }
    const published = answer.then(
      (answered) => {
        this.#pending.delete(messageId)
        this.#window.remember(messageId, answered.position, performance.now())
        return answered
      },
      (error: unknown) => {
        this.#pending.delete(messageId)
        throw error
      },
    )
    this.#pending.set(messageId, published)
    return published
  }
}
