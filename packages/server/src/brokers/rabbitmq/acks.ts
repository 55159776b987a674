import type { Channel, ConsumeMessage } from 'amqplib/callback_api'

/** Messages that may be on their way to the node, or waiting for its next acknowledgement. */
export const PREFETCH_COUNT = 1_000
const ACK_EVERY_COUNT = 250
/** What came is acknowledged after this at the latest; nothing hangs on it but memory of the broker. */
const ACK_AFTER_MS = 100

/** Acknowledges what comes on a channel, many messages at once. */
export class Acks {
  readonly #channel: Channel
  /** Of the last message that came. */
  #deliveryTag = 0
  #count = 0
  #timer: NodeJS.Timeout | undefined
  #isStopped = false

  constructor(channel: Channel) {
    this.#channel = channel
  }

  /** A message has come. */
  add(deliveryTag: number): void {
    this.#deliveryTag = deliveryTag
    if (++this.#count >= ACK_EVERY_COUNT) this.#ack()
    else this.#timer ??= setTimeout(() => this.#ack(), ACK_AFTER_MS)
  }

  /** Sends nothing more. */
  stop(): void {
    clearTimeout(this.#timer)
    this.#isStopped = true
  }

  #ack(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#count > 0 && !this.#isStopped) {
      // All that amqplib looks at.
      const message = { fields: { deliveryTag: this.#deliveryTag } } as ConsumeMessage
      this.#channel.ack(message, true)
    }
    this.#count = 0
  }
}
