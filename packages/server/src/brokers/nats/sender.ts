import type { NatsConnection } from '@nats-io/transport-node'
import { WebMQError } from 'webmq-client/protocol'
import { encodeEnvelope, PUBLISHER_BYTES } from '../remote/envelope.js'
import type { LinkEvents, LinkMessage } from '../remote/link.js'
import type { NatsLog } from './log.js'
import { NatsRounds, type Round, type RoundWaiter } from './rounds.js'
import type { NatsSubjects } from './subjects.js'

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

export interface NatsSenderContext {
  readonly connection: NatsConnection
  readonly events: Pick<LinkEvents, 'confirmed' | 'refused'>
  /** As in {@link LinkContext}. */
  readonly node: string
  readonly subjects: NatsSubjects
  /** Takes the logged messages; absent without history. */
  readonly log: Pick<NatsLog, 'publish' | 'isWaiting'> | undefined
  /** The server has answered. */
  readonly alive: () => void
}

/** Sends the messages of a turn together, and a ping behind them, whose answer confirms them. */
export class NatsSender {
  readonly rounds = new NatsRounds()
  readonly #context: NatsSenderContext
  /** Messages of this turn. */
  #queue: LinkMessage[] = []
  #isFlushScheduled = false
  /** Bytes sent since the last ping. */
  #unconfirmedBytes = 0
  #isOver = false

  constructor(context: NatsSenderContext) {
    this.#context = context
  }

  /** Sends nothing more, and reports no more events. */
  over(cause: Error): void {
    this.#isOver = true
    this.#queue = []
    for (const waiter of this.rounds.takeAllWaiters()) waiter.failed(cause)
  }

  /** Asks the server for a sign of life, unless an answer is awaited anyway. */
  probe(): void {
    if (this.rounds.pingCount === 0) this.#ping()
  }

  /** As {@link Link.publish}. */
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
      this.rounds.wait(waiter)
      this.#schedule()
    }
  }

  /** While an answer is pending, it waits for the rest of the turn. */
  #schedule(): void {
    if (this.#isFlushScheduled || this.#isOver) return
    this.#isFlushScheduled = true
    const flush = () => {
      this.#isFlushScheduled = false
      this.#flush()
    }
    if (this.rounds.pingCount === 0 && this.#context.log?.isWaiting !== true) queueMicrotask(flush)
    else setImmediate(flush)
  }

  /** The library writes everything of one microtask together; its `flush` adds a ping. */
  #flush(): void {
    if (this.#isOver) return
    this.sendQueue()
    const isPingDue = this.rounds.pingCount < MAX_PINGS || this.#unconfirmedBytes >= MAX_UNCONFIRMED_BYTES
    if (this.rounds.isOpenEmpty) this.#unconfirmedBytes = 0
    else if (isPingDue) this.#ping()
  }

  /** Sends the messages of this turn now. */
  sendQueue(): void {
    const queue = this.#queue
    this.#queue = []
    for (const message of queue) this.#send(message)
  }

  #send(message: LinkMessage): void {
    const { connection, events, log, node, subjects } = this.#context
    try {
      const subject = subjects.ofKey(message.key)
      const bytes = encodeEnvelope(node, message)
      this.#assertFits(message, bytes.length)
      if (message.isLogged) log?.publish(subject, bytes, message)
      else {
        connection.publish(subject, bytes)
        this.rounds.sent(message)
      }
    } catch (cause) {
      // If the connection is closed, the next link sends the message.
      if (!connection.isClosed())
        events.refused(message.sequence, cause instanceof Error ? cause : new Error(String(cause)))
    }
  }

  #assertFits({ messageId, isLogged, publisher }: LinkMessage, envelopeBytes: number): void {
    const maxBytes = this.#context.connection.info?.max_payload
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
    this.rounds.close()
    this.#context.connection.flush().then(
      () => this.#answered(),
      // `closed` reports a lost connection.
      () => undefined,
    )
  }

  /**
   * The server reports errors before it answers the next ping, but the library passes them on some microtasks later.
   * They are all known in the next turn.
   */
  #answered(): void {
    this.#context.alive()
    this.rounds.answered()
    setImmediate(() => this.#settle())
  }

  #settle(): void {
    if (this.#isOver) return
    const round = this.rounds.settled()
    if (round === undefined) return
    for (const waiter of round.waiters) waiter.done()
    if (round.lastSequence > 0) this.#confirm(round)
    if (!this.rounds.isOpenEmpty) this.#schedule()
  }

  /** With a log, the ping does not confirm logged messages in between, so the others are confirmed one by one. */
  #confirm({ lastSequence, messages }: Readonly<Round>): void {
    const { events, log } = this.#context
    if (log === undefined) events.confirmed(lastSequence, true)
    else for (const message of messages) if (message !== undefined) events.confirmed(message.sequence, false)
  }
}
