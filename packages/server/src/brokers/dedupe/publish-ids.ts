import type { Accepted } from '../../ports/broker.js'
import { DedupeWindow, type DedupeWindowOptions } from '../../ports/dedupe-window.js'

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
    if (this.#window.has(messageId, nowMs)) return duplicateOf(this.#window.positionOf(messageId))
    const pending = this.#pending.get(messageId)
    if (pending !== undefined) return pending.then(({ position }) => duplicateOf(position))
    const answer = publish()
    if (!(answer instanceof Promise)) {
      this.#window.remember(messageId, answer.position, nowMs)
      return answer
    }
    const published = answer.then(
      (accepted) => {
        this.#pending.delete(messageId)
        this.#window.remember(messageId, accepted.position, performance.now())
        return accepted
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

/** The answer to a duplicate of the message at this position. */
export function duplicateOf(position: Accepted['position']): Accepted {
  return position === undefined ? { isDuplicate: true } : { position, isDuplicate: true }
}
