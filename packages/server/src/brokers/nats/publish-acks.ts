import type { ApiError, PubAck } from '@nats-io/jetstream'
import type { LinkMessage } from '../remote/link.js'
import type { NatsLog } from './log.js'

type PublishAnswer = PubAck & { readonly error?: ApiError }

/**
 * Logged messages that were sent and that the log has not brought yet.
 *
 * The log itself confirms a message. So the stream is asked for an answer once per turn, and for each message with an
 * id, which it may know already. It stores the messages of one connection in their order: a message that the log has
 * not brought before a later one was not stored.
 */
export class PublishAcks {
  readonly #log: NatsLog
  readonly #sent = new Map<number, LinkMessage>()
  /** Sequences of those that the stream answers. */
  readonly #asked = new Set<number>()
  /** The stream has refused a message: from then on it says of each message why. */
  #asksAll = false

  constructor(log: NatsLog) {
    this.#log = log
  }

  get isWaiting(): boolean {
    return this.#sent.size > 0
  }

  /** A message is about to be sent. @returns whether to ask for an answer */
  sent(message: LinkMessage, isLastOfTurn: boolean): boolean {
    const { sequence, messageId } = message
    const isAsked = isLastOfTurn || this.#asksAll || messageId !== undefined
    this.#sent.set(sequence, message)
    if (isAsked) this.#asked.add(sequence)
    return isAsked
  }

  /** The log has brought a message of this node. */
  stored(sequence: number): void {
    this.#sent.delete(sequence)
    for (const earlier of this.#sent.keys()) {
      if (earlier > sequence) return
      if (this.#asked.has(earlier)) continue
      this.#sent.delete(earlier)
      this.#log.link.events.refused(earlier, new Error('JetStream has not stored it'))
    }
  }

  /** @returns an error text if another log than the followed one has answered: the stream is gone, or has lost its end */
  answered(sequence: number, text: string): string | undefined {
    if (!this.#asked.delete(sequence)) return undefined
    const { events } = this.#log.link
    const { stream, seq, duplicate, error } = JSON.parse(text) as PublishAnswer
    if (error !== undefined) {
      this.#sent.delete(sequence)
      events.refused(sequence, new Error(`JetStream: ${error.description}`))
      // The log drops the second copy of what was stored.
      this.#asksAll = true
      for (const earlier of [...this.#sent.values()])
        if (earlier.sequence < sequence && !this.#asked.has(earlier.sequence)) this.#log.link.sender.send(earlier, true)
    } else if (stream !== this.#log.stream.name)
      return `the stream ${stream} stores messages that belong to ${this.#log.stream.name}`
    else if (duplicate === true) {
      this.#sent.delete(sequence)
      events.confirmed(sequence, false, { epoch: this.#log.following.epoch, offset: seq })
    } else if (this.#sent.has(sequence) && seq <= this.#log.following.lastSequence)
      return `JetStream stores at ${seq} what is published after ${this.#log.following.lastSequence}: it serves two logs`
    return undefined
  }

  /** Removes the oldest message whose key `isIt` is true for; returns its sequence. */
  take(isIt: (key: string) => boolean): number | undefined {
    for (const [sequence, { key }] of this.#sent) {
      if (!isIt(key)) continue
      this.#sent.delete(sequence)
      this.#asked.delete(sequence)
      return sequence
    }
    return undefined
  }
}
