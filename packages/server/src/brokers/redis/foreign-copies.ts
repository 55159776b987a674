import type { ReceivedMessage } from './subscriber.js'

/**
 * Finds the copies of a message that another program published. Redis sends one copy for each subscription that
 * matches, and such a message has no sequence to tell the copies by.
 *
 * Redis sends all copies of a message one behind the other, each by another subscription. So a message is a copy of the
 * one before when channel and payload are the same and its subscription has not brought that one yet.
 *
 *     a.b "1" by a.*     first
 *     a.b "1" by *.b     copy
 *     a.b "1" by a.*     the next message, with the same payload
 */
export class ForeignCopies {
  #channel: Buffer | undefined
  #payload: Buffer | undefined
  /** Globs that have brought the last message; `undefined` for the channel itself. */
  readonly #broughtBy = new Set<string | undefined>()

  /** Whether this is the first copy of a message. Keeps the buffers until the next call. */
  isFirst({ channel, payload, glob }: ReceivedMessage): boolean {
    const isCopy =
      !this.#broughtBy.has(glob) && this.#channel?.equals(channel) === true && this.#payload?.equals(payload) === true
    if (!isCopy) this.#broughtBy.clear()
    this.#broughtBy.add(glob)
    this.#channel = channel
    this.#payload = payload
    return !isCopy
  }

  /**
   * A new subscription is live. It may bring the next message and not have brought the last one, which would make an
   * equal message look like a copy.
   */
  forget(): void {
    this.#channel = undefined
  }
}
