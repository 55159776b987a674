import type { Accepted, PublishingConnection } from '../../../kernel/ports/broker.js'
import { type DedupeOptions, DedupeWindow } from '../../../kernel/ports/dedupe-window.js'
import { accepted } from '../../../kernel/ports/messages.js'

interface PendingId {
  readonly answer: Promise<Accepted>
  /** Who published it last. */
  author: PublishingConnection | undefined
}

/**
 * Publishes a message id once within its window, even while the first publish is pending. A failed one may be repeated.
 */
export class PublishIds {
  readonly #window: DedupeWindow
  readonly #isOff: boolean
  readonly #pending = new Map<string, PendingId>()

  constructor(options: DedupeOptions) {
    this.#window = new DedupeWindow(options)
    this.#isOff = options.dedupeWindowMs === 0 || options.dedupeMaxIds === 0
  }

  authorOf(messageId: string): PublishingConnection | undefined {
    return this.#pending.get(messageId)?.author
  }

  /**
   * Calls `publish`, or returns the earlier answer as a duplicate.
   * @param author Of this publish: a pending one is now for it, too.
   */
  once(
    messageId: string,
    publish: () => Promise<Accepted> | Accepted,
    author?: PublishingConnection,
  ): Promise<Accepted> | Accepted {
    if (this.#isOff) return publish()
    const nowMs = performance.now()
    if (this.#window.has(messageId, nowMs)) return accepted(this.#window.positionOf(messageId), true)
    const pending = this.#pending.get(messageId)
    if (pending !== undefined) {
      pending.author = author
      return pending.answer.then(({ position }) => accepted(position, true))
    }
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
    this.#pending.set(messageId, { answer: published, author })
    return published
  }
}
