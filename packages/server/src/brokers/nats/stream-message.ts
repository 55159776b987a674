import type { Msg } from '@nats-io/transport-node'

/** A message of the stream, with what JetStream says of it. */
export interface StreamMessage {
  readonly subject: string
  readonly data: Uint8Array
  /** In the stream. */
  readonly sequence: number
  /** Counts what the consumer has sent. */
  readonly deliverySequence: number
  /** When it was stored: Unix time in nanoseconds, digits. */
  readonly time: string
  /** Messages that the consumer has not sent yet. */
  readonly pendingCount: number
}

/** Words of the reply subject before the sequences: of servers before 2.10 without domain and account (NATS ADR-15). */
const LEAD_WORDS = 7
const OLD_LEAD_WORDS = 5
const OLD_WORDS = 9
const TIME_DIGITS_BELOW_MS = 6

/**
 * Reads what JetStream says of the messages of one consumer, in the subject for an answer:
 * `$JS.ACK.<domain>.<account>.<stream>.<consumer>.<times>.<sequence>.<delivery>.<time>.<pending>`.
 */
export class DeliveredMessages {
  /** The words before the sequences: the same for all messages that were sent once. */
  #lead = ''

  /** @throws {Error} when it is no message of JetStream. */
  read({ subject, data, reply = '' }: Msg): StreamMessage {
    if (this.#lead === '' || !reply.startsWith(this.#lead)) this.#lead = leadOf(reply)
    const deliveryAt = endOfWord(reply, this.#lead.length) + 1
    const timeAt = endOfWord(reply, deliveryAt) + 1
    const pendingAt = endOfWord(reply, timeAt) + 1
    return {
      subject,
      data,
      sequence: Number(reply.slice(this.#lead.length, deliveryAt - 1)),
      deliverySequence: Number(reply.slice(deliveryAt, timeAt - 1)),
      time: reply.slice(timeAt, pendingAt - 1),
      pendingCount: Number(reply.slice(pendingAt, endOfWord(reply, pendingAt))),
    }
  }
}

/** When a message was stored: Unix time in milliseconds. */
export function storedAtMs({ time }: StreamMessage): number {
  return Number(time.slice(0, -TIME_DIGITS_BELOW_MS))
}

function endOfWord(text: string, from: number): number {
  const end = text.indexOf('.', from)
  return end < 0 ? text.length : end
}

function leadOf(reply: string): string {
  const words = reply.split('.')
  if (words.length < OLD_WORDS || !reply.startsWith('$JS.ACK.'))
    throw new Error('a message of the stream without its sequence')
  return `${words.slice(0, words.length === OLD_WORDS ? OLD_LEAD_WORDS : LEAD_WORDS).join('.')}.`
}
