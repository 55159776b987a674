import type { Channel, ConsumeMessage } from 'amqplib'

/** Messages that may be on their way to the node, or waiting for its next acknowledgement. */
export const PREFETCH_COUNT = 1_000
const ACK_EVERY_COUNT = 250
/** Limit for an acknowledgement; only memory of the broker depends on it. */
const ACK_AFTER_MS = 100

/** Acknowledges the messages of a channel, many at once. */
export class Acks {
  readonly #channel: Channel
  #last: ConsumeMessage | undefined
  #count = 0
  #timer: NodeJS.Timeout | undefined
  #isStopped = false

  constructor(channel: Channel) {
    this.#channel = channel
  }

  /** A message has arrived. */
  add(message: ConsumeMessage): void {
    if (this.#isStopped) return
    this.#last = message
    if (++this.#count >= ACK_EVERY_COUNT) this.#ack()
    else this.#timer ??= setTimeout(() => this.#ack(), ACK_AFTER_MS)
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#isStopped = true
  }

  #ack(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#last !== undefined && !this.#isStopped) this.#channel.ack(this.#last, true)
    this.#last = undefined
    this.#count = 0
  }
}
