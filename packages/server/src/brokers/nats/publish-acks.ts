import type { ApiError, PubAck } from '@nats-io/jetstream'
import type { Accepted } from '../../ports/broker.js'
import type { LinkEvents, LinkMessage } from '../remote/link.js'

/** JetStream's answer to a message. */
export type PublishAnswer = PubAck & { readonly error?: ApiError }

/** A message that the stream has stored. */
interface Stored {
  readonly sequence: number
  readonly accepted: Accepted
  readonly offset: number
}

/**
 * Logged messages that were sent, and the stream's answers. A message is confirmed once this node has also received it
 * from the stream: a caller that gets a position can read up to it.
 */
export class PublishAcks {
  readonly #stream: string
  readonly #events: LinkEvents
  readonly #keys = new Map<number, string>()
  /** In the order of the answers. */
  #stored: Stored[] = []
  /** Entries before it are confirmed; the array is cut when half of it is. */
  #head = 0
  /** This node has the stream up to this offset. */
  #offset = 0

  /** @param stream Name of the log's stream. */
  constructor(stream: string, events: LinkEvents) {
    this.#stream = stream
    this.#events = events
  }

  get isWaiting(): boolean {
    return this.#keys.size > 0
  }

  sent({ sequence, key }: LinkMessage): void {
    this.#keys.set(sequence, key)
  }

  /**
   * @param epoch The epoch of the stream.
   * @returns an error text if another stream has answered: the log's stream is gone
   */
  answered(
    sequence: number,
    { stream, seq: offset, duplicate, error }: PublishAnswer,
    epoch: string,
  ): string | undefined {
    if (!this.#keys.delete(sequence)) return undefined
    if (error !== undefined) {
      this.#events.refused(sequence, new Error(`JetStream: ${error.description}`))
      return undefined
    }
    if (stream !== this.#stream) return `the stream ${stream} stores messages that belong to ${this.#stream}`
    const accepted = { position: { epoch, offset }, isDuplicate: duplicate === true }
    this.#stored.push({ sequence, offset, accepted })
    this.followed(this.#offset)
    return undefined
  }

  /** This node has the stream up to this offset. */
  followed(offset: number): void {
    this.#offset = offset
    for (;;) {
      const next = this.#stored[this.#head]
      if (next === undefined || next.offset > offset) break
      this.#head++
      this.#events.confirmed(next.sequence, false, next.accepted)
    }
    if (this.#head === 0 || this.#head * 2 < this.#stored.length) return
    this.#stored = this.#stored.slice(this.#head)
    this.#head = 0
  }

  /** Removes the oldest message whose key `isIt` is true for; returns its sequence. */
  take(isIt: (key: string) => boolean): number | undefined {
    for (const [sequence, key] of this.#keys) {
      if (!isIt(key)) continue
      this.#keys.delete(sequence)
      return sequence
    }
    return undefined
  }
}
