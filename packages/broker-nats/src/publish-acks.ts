import type { ApiError, PubAck } from '@nats-io/jetstream'
import { WebMQError } from 'webmq-client/protocol'
import { type LinkEvents, type LinkMessage, reasonOf } from 'webmq-server/brokers'
import type { LogFollow } from './log-follow.js'

const NOT_STORED = 'JetStream has not stored it'

type PublishAnswer = PubAck & { readonly error?: ApiError }

/**
 * Logged messages that were sent and that the log has not brought yet.
 *
 * The log itself confirms a message. So the stream is asked for an answer once per turn, and for each message with an
 * id, which it may know already. It stores the messages of one connection in their order: a message that the log has
 * not brought before a later one was not stored, unless it is a duplicate. A JetStream without a leader drops messages and
 * says nothing. They are refused, and not sent again behind later ones of their publisher.
 */
export class PublishAcks {
  readonly #stream: string
  readonly #following: LogFollow
  readonly #events: LinkEvents
  readonly #resend: (message: LinkMessage) => void
  readonly #sent = new Map<number, LinkMessage>()
  /** Of which an answer is awaited, or has come before the log has brought the message. */
  readonly #asked = new Map<number, 'unanswered' | 'stored'>()
  /** The newest that the log has brought. */
  #broughtSequence = 0
  /** Duplicates of what was read, it seems, and the check that this is the stream which knows them. */
  #duplicates: { readonly sequence: number; readonly offset: number }[] = []
  #isChecking = false
  /** The stream has refused a message: from then on it says of each message why. */
  #asksAll = false

  constructor(stream: string, following: LogFollow, events: LinkEvents, resend: (message: LinkMessage) => void) {
    this.#stream = stream
    this.#following = following
    this.#events = events
    this.#resend = resend
  }

  get isWaiting(): boolean {
    return this.#sent.size > 0
  }

  /**
   * A message is about to be sent. @returns whether to ask for an answer
   * @throws {Error} when the log has later ones of this node: an earlier link has sent it, and it was not stored.
   */
  sent(message: LinkMessage, isLastOfTurn: boolean): boolean {
    const { sequence, messageId } = message
    if (sequence < this.#broughtSequence) throw new Error(NOT_STORED)
    const isAsked = isLastOfTurn || this.#asksAll || messageId !== undefined
    this.#sent.set(sequence, message)
    if (isAsked) this.#asked.set(sequence, 'unanswered')
    return isAsked
  }

  /** The log has brought it. */
  stored(sequence: number): void {
    this.#broughtSequence = Math.max(this.#broughtSequence, sequence)
    this.#sent.delete(sequence)
    const isAnswered = this.#asked.get(sequence) === 'stored'
    if (isAnswered) this.#asked.delete(sequence)
    this.#refuseBefore(sequence, isAnswered)
  }

  /** The link is lost: what stands behind later messages if it is sent again is refused. */
  over(): void {
    this.#refuseBefore(this.#broughtSequence, true)
  }

  /** @param areAnswersHere No answer to an earlier message is on its way. */
  #refuseBefore(sequence: number, areAnswersHere: boolean): void {
    for (const earlier of this.#sent.keys()) {
      if (earlier > sequence) return
      if (!areAnswersHere && this.#asked.has(earlier)) continue
      this.#sent.delete(earlier)
      this.#asked.delete(earlier)
      this.#events.refused(earlier, refusal(NOT_STORED))
    }
  }

  /** @returns an error text if another log than the followed one has answered: the stream is gone, or has lost its end */
  answered(sequence: number, text: string): string | undefined {
    if (!this.#asked.delete(sequence)) return undefined
    const { stream, seq, duplicate, error } = JSON.parse(text) as PublishAnswer
    if (error !== undefined) {
      this.#sent.delete(sequence)
      this.#events.refused(sequence, refusal(error.description))
      // The log drops the second copy of what was stored.
      this.#asksAll = true
      for (const earlier of [...this.#sent.values()])
        if (earlier.sequence < sequence && !this.#asked.has(earlier.sequence)) this.#resend(earlier)
    } else if (stream !== this.#stream) return `the stream ${stream} stores messages that belong to ${this.#stream}`
    else if (duplicate === true) {
      this.#sent.delete(sequence)
      this.#duplicates.push({ sequence, offset: seq })
      this.#confirmDuplicates().catch((cause: Error) => this.#following.lose(reasonOf(cause)))
    } else if (!this.#sent.has(sequence)) this.#refuseBefore(sequence, true)
    else if (seq <= this.#following.lastSequence)
      return `JetStream stores at ${seq} what is published after ${this.#following.lastSequence}: it serves two logs`
    else this.#asked.set(sequence, 'stored')
    return undefined
  }

  /** A stream that is made again knows ids too, and this node may still follow the one before. */
  async #confirmDuplicates(): Promise<void> {
    if (this.#isChecking) return
    this.#isChecking = true
    while (this.#duplicates.length > 0) {
      const told = this.#duplicates.splice(0)
      const { epoch, lastSequence } = this.#following
      if (told.some(({ offset }) => offset <= lastSequence) && (await this.#following.check()) === undefined) return
      for (const { sequence, offset } of told) this.#events.confirmed(sequence, false, { epoch, offset })
    }
    this.#isChecking = false
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

/** Without a cause: clients see JetStream's words, which name neither hosts nor users. */
function refusal(words: string): WebMQError {
  return new WebMQError('E_BROKER_UNAVAILABLE', { detail: `it refused the message: ${words}` })
}
