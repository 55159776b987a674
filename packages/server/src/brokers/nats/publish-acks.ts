import type { ApiError, PubAck } from '@nats-io/jetstream'
import type { LinkEvents, LinkMessage } from '../remote/link.js'

export type PublishAnswer = PubAck & { readonly error?: ApiError }

/** Logged messages that were sent, and the stream's answers. */
export class PublishAcks {
  readonly #stream: string
  readonly #events: LinkEvents
  readonly #keys = new Map<number, string>()

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
  answered(sequence: number, { stream, seq, duplicate, error }: PublishAnswer, epoch: string): string | undefined {
    if (!this.#keys.delete(sequence)) return undefined
    if (error !== undefined) this.#events.refused(sequence, new Error(`JetStream: ${error.description}`))
    else if (stream !== this.#stream) return `the stream ${stream} stores messages that belong to ${this.#stream}`
    else this.#events.confirmed(sequence, false, duplicate === true ? { epoch, offset: seq } : undefined)
    return undefined
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
