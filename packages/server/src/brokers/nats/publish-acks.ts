import type { ApiError, PubAck } from '@nats-io/jetstream'
import type { Accepted } from '../../ports/broker.js'
import type { LinkEvents, LinkMessage } from '../remote/link.js'

/** What JetStream answers to a message. */
export type PublishAnswer = PubAck & { readonly error?: ApiError }

/** A message that the stream has taken. */
interface Taken {
  readonly sequence: number
  readonly accepted: Accepted
  readonly offset: number
}

/**
 * Logged messages that were sent, and what the stream has answered. A message is confirmed once this node has it from the stream, too:
 * a caller who is told a position can read up to there.
 */
export class PublishAcks {
  readonly #stream: string
  readonly #events: LinkEvents
  readonly #keys = new Map<number, string>()
  /** In the order of the answers. */
  #taken: Taken[] = []
  /** Those before it are confirmed; the array is cut when half of it is. */
  #head = 0
  /** The stream has come to this node up to here. */
  #offset = 0

  /** @param stream The only one whose answers count. */
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
   * @param epoch Of the stream.
   * @returns why the answer is of no use: then the stream is not there any more
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
    if (stream !== this.#stream) return `the stream ${stream} takes what is for ${this.#stream}`
    const accepted = { position: { epoch, offset }, isDuplicate: duplicate === true }
    this.#taken.push({ sequence, offset, accepted })
    this.followed(this.#offset)
    return undefined
  }

  /** The stream has come to this node up to this place. */
  followed(offset: number): void {
    this.#offset = offset
    for (;;) {
      const next = this.#taken[this.#head]
      if (next === undefined || next.offset > offset) break
      this.#head++
      this.#events.confirmed(next.sequence, false, next.accepted)
    }
    if (this.#head === 0 || this.#head * 2 < this.#taken.length) return
    this.#taken = this.#taken.slice(this.#head)
    this.#head = 0
  }

  /** Takes out the oldest message with such a key; its sequence. */
  take(isIt: (key: string) => boolean): number | undefined {
    for (const [sequence, key] of this.#keys) {
      if (!isIt(key)) continue
      this.#keys.delete(sequence)
      return sequence
    }
    return undefined
  }
}
