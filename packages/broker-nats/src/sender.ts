import type { NatsConnection } from '@nats-io/transport-node'
import { WebMQError } from 'webmq-client/protocol'
import {
  encodeEnvelope,
  type LinkContext,
  type LinkEvents,
  type LinkMessage,
  type Liveness,
  PUBLISHER_BYTES,
} from 'webmq-server/brokers'
import type { NatsSubjects } from './subjects.js'

export interface RoundWaiter {
  done(): void
  failed(cause: Error): void
}

/** What a {@link NatsSender} uses of its link. */
export interface SenderLink {
  readonly connection: NatsConnection
  readonly context: LinkContext
  readonly events: LinkEvents
  readonly subjects: NatsSubjects
  readonly liveness: Liveness
  readonly log: SenderLog | undefined
}

export interface SenderLog {
  readonly acks: { readonly isWaiting: boolean }
  publish(subject: string, bytes: Uint8Array, message: LinkMessage, isLastOfTurn: boolean): void
}

/** What was sent between two pings. */
interface Round {
  /** Refused messages are `undefined`. */
  readonly messages: (LinkMessage | undefined)[]
  lastSequence: number
  readonly waiters: RoundWaiter[]
  /** Its ping is answered. It is settled when all errors are known. */
  isAnswered: boolean
}

function openRound(): Round {
  return { messages: [], lastSequence: 0, waiters: [], isAnswered: false }
}

/** Most bytes of an envelope without a message id and attributes. */
export const ENVELOPE_BYTES = 20
/** `NATS/1.0`, the header with the message id, and line ends. */
const ID_HEADER_BYTES = 49
/**
 * Most unanswered pings, except for {@link MAX_UNCONFIRMED_BYTES}. The next ping confirms everything sent until then.
 */
const MAX_PINGS = 64
/** After this many bytes a ping follows in any case: on a slow connection its answer is the sign of life. */
const MAX_UNCONFIRMED_BYTES = 262_144

/**
 * Sends the messages of a turn together, and a ping behind them, whose answer confirms them: core NATS answers only pings,
 * each after everything before it. So a ping ends each round. Several rounds may be open; no round waits for another.
 */
export class NatsSender {
  /** What the server has not confirmed, oldest first. No ping has ended the last one. */
  readonly #rounds: Round[] = [openRound()]
  readonly #link: SenderLink
  #queue: LinkMessage[] = []
  #isFlushScheduled = false
  #unconfirmedBytes = 0
  #isOver = false

  constructor(link: SenderLink) {
    this.#link = link
  }

  /** Sends nothing more, and reports no more events. */
  over(cause: Error): void {
    this.#isOver = true
    this.#queue = []
    for (const waiter of this.#rounds.flatMap(({ waiters }) => waiters.splice(0))) waiter.failed(cause)
  }

  /** Asks the server for a sign of life, unless an answer is awaited anyway. */
  probe(): void {
    if (!this.#isPinging) this.#ping()
  }

  publish(message: LinkMessage): void {
    if (this.#isOver) return
    this.#queue.push(message)
    this.#unconfirmedBytes += message.payload.length
    if (this.#unconfirmedBytes < MAX_UNCONFIRMED_BYTES) this.#schedule()
    else this.#flush()
  }

  /** Calls the waiter when the server has answered everything sent until now. */
  wait(waiter: RoundWaiter): void {
    if (this.#isOver) waiter.failed(new WebMQError('E_BROKER_UNAVAILABLE', { detail: 'the link is lost' }))
    else {
      this.#open.waiters.push(waiter)
      this.#schedule()
    }
  }

  take(isIt: (message: LinkMessage) => boolean): LinkMessage | undefined {
    for (const { messages } of this.#rounds) {
      const at = messages.findIndex((message) => message !== undefined && isIt(message))
      if (at >= 0) return messages.splice(at, 1, undefined)[0]
    }
    return undefined
  }

  /**
   * Removes the waiters that an error without a subject may belong to: those of all answered rounds, or else those of
   * the oldest round that has any.
   */
  takeOldestWaiters(): readonly RoundWaiter[] {
    const answered = this.#rounds.filter(({ isAnswered }) => isAnswered).flatMap(({ waiters }) => waiters.splice(0))
    if (answered.length > 0) return answered
    return this.#rounds.find(({ waiters }) => waiters.length > 0)?.waiters.splice(0) ?? []
  }

  get #open(): Round {
    return this.#rounds[this.#rounds.length - 1] as Round
  }

  /** Whether nothing was sent since the last ping. */
  get #isOpenEmpty(): boolean {
    const { messages, waiters } = this.#open
    return messages.length === 0 && waiters.length === 0
  }

  get #isPinging(): boolean {
    return this.#rounds.length > 1
  }

  /** While an answer is pending, it waits for the rest of the turn. */
  #schedule(): void {
    if (this.#isFlushScheduled || this.#isOver) return
    this.#isFlushScheduled = true
    const flush = () => {
      this.#isFlushScheduled = false
      this.#flush()
    }
    if (!this.#isPinging && this.#link.log?.acks.isWaiting !== true) queueMicrotask(flush)
    else setImmediate(flush)
  }

  /** The library writes everything of one microtask together; its `flush` adds a ping. */
  #flush(): void {
    if (this.#isOver) return
    this.sendQueue()
    const isPingDue = this.#rounds.length <= MAX_PINGS || this.#unconfirmedBytes >= MAX_UNCONFIRMED_BYTES
    if (this.#isOpenEmpty) this.#unconfirmedBytes = 0
    else if (isPingDue) this.#ping()
  }

  sendQueue(): void {
    const queue = this.#queue
    this.#queue = []
    const last = this.#link.log === undefined ? undefined : queue.findLast(({ isLogged }) => isLogged)
    for (const message of queue) this.send(message, message === last)
  }

  /** @param isLastOfTurn No logged message follows in this turn. */
  send(message: LinkMessage, isLastOfTurn: boolean): void {
    const { connection, context, events, log, subjects } = this.#link
    try {
      const subject = subjects.ofKey(message.key)
      const bytes = encodeEnvelope(context.node, message)
      this.#assertFits(message, bytes.length)
      if (message.isLogged) log?.publish(subject, bytes, message, isLastOfTurn)
      else {
        connection.publish(subject, bytes)
        const open = this.#open
        open.messages.push(message)
        open.lastSequence = message.sequence
      }
    } catch (cause) {
      // If the connection is closed, the next link sends the message.
      if (!connection.isClosed())
        events.refused(message.sequence, cause instanceof Error ? cause : new Error(String(cause)))
    }
  }

  #assertFits({ messageId, isLogged, publisher }: LinkMessage, envelopeBytes: number): void {
    const maxBytes = this.#link.connection.info?.max_payload
    if (maxBytes === undefined) return
    // Whether a message fits does not depend on who publishes it.
    const publisherBytes = publisher === undefined ? PUBLISHER_BYTES : 0
    const byteCount = envelopeBytes + publisherBytes + (messageId !== undefined && isLogged ? ID_HEADER_BYTES : 0)
    if (byteCount <= maxBytes) return
    const detail = `${byteCount} bytes with its envelope, and the NATS server takes ${maxBytes}`
    throw new WebMQError('E_PAYLOAD_TOO_LARGE', { detail })
  }

  #ping(): void {
    this.#unconfirmedBytes = 0
    const round = this.#open
    this.#rounds.push(openRound())
    this.#link.connection.flush().then(
      () => this.#answered(round),
      // `closed` reports a lost connection.
      () => undefined,
    )
  }

  /**
   * The server reports errors before it answers the next ping, but the library passes them on some microtasks later.
   * They are all known in the next turn.
   */
  #answered(round: Round): void {
    this.#link.liveness.alive()
    round.isAnswered = true
    setImmediate(() => this.#settle())
  }

  #settle(): void {
    if (this.#isOver) return
    const round = this.#rounds.shift()
    if (round === undefined) return
    for (const waiter of round.waiters) waiter.done()
    // Logged messages in between wait for the log.
    if (round.lastSequence > 0) this.#link.events.confirmed(round.lastSequence, true)
    if (!this.#isOpenEmpty) this.#schedule()
  }
}
