import { WebMQError } from 'webmq-client/protocol'
import { AwakeClock } from '../../../kernel/base/awake-clock.js'
import { type Deferred, deferred } from '../../../kernel/base/deferred.js'
import { NumberedQueue } from '../../../kernel/base/numbered-queue.js'
import type { Accepted, BrokerRoom, OutboundMessage, PublishingConnection } from '../../../kernel/ports/broker.js'
import { textLengthOf } from '../../../kernel/ports/messages.js'
import { MAX_PENDING_MESSAGES } from '../dedupe/duplicate-filter.js'
import type { PublishIds } from '../dedupe/publish-ids.js'
import type { Link, LinkMessage } from './link.js'
import type { RemoteBrokerOptions } from './options.js'
import { PayloadCopier } from './payload-copier.js'
import { type Paced, PublishPace } from './publish-pace.js'

interface Pending extends Paced {
  readonly message: LinkMessage
  readonly byteCount: number
  readonly deadlineMs: number
  resolve(accepted: Accepted): void
  reject(error: unknown): void
}

type PendingLimits = Pick<RemoteBrokerOptions, 'brokerTimeoutMs' | 'brokerMaxPendingBytes'>

/** Estimated memory of a message besides its payload and its texts. */
export const MESSAGE_OVERHEAD_BYTES = 256
/** A deadline that is noticed later than this says that the process stood still. */
const MAX_LATE_MS = 250
/** Time to read what has arrived meanwhile. */
const READING_MS = 250
/** Shared by all publishes without a position. */
const ACCEPTED: Accepted = { isDuplicate: false }

/**
 * Messages that the broker has not accepted yet, in the order of their sequences, bounded in number, bytes and time. They
 * are sent in this order over the current link, and wait while there is none or the broker is blocked.
 *
 * A client that has lost its connection publishes again, in order, through another node. So nothing is sent here that
 * would stand in the log before earlier messages of its publisher: neither what a connection that has ended left, nor what
 * follows a message that was given up. Nor is sent again what would stand behind later ones.
 */
export class PendingPublishes implements BrokerRoom {
  /** Counters and gauges, as in {@link BrokerStats}. */
  readonly counts = { acceptedCount: 0, rejectedCount: 0, pendingCount: 0, pendingBytes: 0 }
  readonly #limits: PendingLimits
  readonly #ids: PublishIds
  readonly #away: (detail: string) => WebMQError
  /** By their sequences. */
  readonly #entries = new NumberedQueue<Pending>()
  readonly #payloads = new PayloadCopier()
  #timer: NodeJS.Timeout | undefined
  #timerDueMs = 0
  #hasReadFirst = false
  #idle: Deferred<void> | undefined
  /** Runs while something is pending. */
  readonly #clock = new AwakeClock(() => this.counts.pendingCount > 0)
  onRoom: (() => void) | undefined
  /** `undefined` until its bindings are live and the log is complete. */
  #link: Link | undefined
  /** Whether the broker refuses messages for now. A link may report it before it is used. */
  isBlocked = false
  readonly #pace: PublishPace
  /** Sequence of the last message that this link has sent. */
  #sentSequence = 0
  /** Of the last one that the log has brought. The broker takes messages in order: what it lacks before that, it has dropped. */
  #storedSequence = 0

  /** @param away Makes the error of what the broker did not get. */
  constructor(limits: PendingLimits, ids: PublishIds, away: (detail: string) => WebMQError) {
    this.#limits = limits
    this.#ids = ids
    this.#away = away
    this.#pace = new PublishPace(limits.brokerTimeoutMs)
  }

  get hasLink(): boolean {
    return this.#link !== undefined
  }

  get pendingCount(): number {
    return this.counts.pendingCount
  }

  get windowCount(): number | undefined {
    return this.#pace.isSlow ? Math.round(this.#pace.window) : undefined
  }

  get acceptedCount(): number {
    return this.counts.acceptedCount
  }

  get isFull(): boolean {
    return this.counts.pendingCount >= this.#pace.window && this.#taker !== undefined
  }

  /** The link, while it takes messages. */
  get #taker(): Link | undefined {
    return this.isBlocked ? undefined : this.#link
  }

  /** Uses this link from now on. Messages that were not accepted are sent again first. */
  use(link: Link): void {
    this.#link = link
    if (!this.isBlocked) this.#sendAfter(0)
  }

  /** What the link has sent and the broker has not accepted is sent again by the next one, whenever that takes messages. */
  lose(): void {
    this.#link = undefined
    this.#sentSequence = 0
    this.isBlocked = false
    this.onRoom?.()
  }

  block(isBlocked: boolean): void {
    this.isBlocked = isBlocked
    if (!isBlocked) this.#sendAfter(this.#sentSequence)
    this.onRoom?.()
  }

  /** As {@link send}, for several messages of one key. @param payload A bundle: kept, not copied. */
  sendBundle(key: string, payload: Uint8Array, messageCount: number): Promise<Accepted> {
    const byteCount = bytesOf({ key, payload })
    const sequence = this.#nextSequence(byteCount)
    const message = { sequence, key, payload, isBinary: true, isBundle: true, isLogged: false }
    return this.#add(message, messageCount, byteCount)
  }

  /**
   * Sends a message under the next sequence, now or later. Resolves once the broker has accepted it.
   * @param message Its payload is copied.
   * @throws {WebMQError} `E_BROKER_UNAVAILABLE` when too much is pending already. The promise rejects with it when the
   *   message has waited too long.
   */
  send(outbound: OutboundMessage, isLogged: boolean): Promise<Accepted> {
    const byteCount = bytesOf(outbound)
    const sequence = this.#nextSequence(byteCount)
    const { key, isBinary, publisher, messageId, attributes } = outbound
    const payload = this.#payloads.copy(outbound.payload)
    const message = { sequence, key, payload, isBinary, publisher, isBundle: false, messageId, isLogged }
    return this.#add(attributes === undefined ? message : { ...message, attributes }, 1, byteCount)
  }

  #nextSequence(byteCount: number): number {
    const { counts } = this
    const { span, firstNumber } = this.#entries
    const isFull = counts.pendingBytes + byteCount > this.#limits.brokerMaxPendingBytes
    // The first message may have any size: a limit below the largest message must not stop everything.
    if (span >= MAX_PENDING_MESSAGES || (counts.pendingCount > 0 && isFull)) {
      counts.rejectedCount++
      throw this.#away(`${counts.pendingCount} messages, ${counts.pendingBytes} bytes wait for it`)
    }
    return firstNumber + span
  }

  #add(message: LinkMessage, messageCount: number, byteCount: number): Promise<Accepted> {
    const nowMs = performance.now()
    this.#clock.start()
    const sentAtMs = this.#clock.at(nowMs)
    const taker = this.#taker
    const acceptedBefore = this.counts.acceptedCount
    const oldest = taker && this.#entries.first
    if (oldest !== undefined) this.#pace.waits(oldest, acceptedBefore, sentAtMs)
    const deadlineMs = nowMs + this.#limits.brokerTimeoutMs
    const accepted = new Promise<Accepted>((resolve, reject) => {
      this.#entries.push({ message, messageCount, byteCount, deadlineMs, sentAtMs, acceptedBefore, resolve, reject })
    })
    this.counts.pendingCount += messageCount
    this.counts.pendingBytes += byteCount
    if (this.#timer === undefined) this.#awaitDeadline(this.#limits.brokerTimeoutMs)
    if (taker !== undefined) this.#give(taker, message)
    return accepted
  }

  /**
   * The broker has accepted a message, or all messages up to it. Does nothing for messages that are settled, or that
   * wait for their position in the log.
   */
  confirm(sequence: number, isCumulative: boolean, accepted?: Accepted): void {
    const first = isCumulative ? this.#entries.firstNumber : sequence
    if (accepted?.isDuplicate === false) this.#storedSequence = Math.max(this.#storedSequence, sequence)
    const { isSlow } = this.#pace
    const nowMs = isSlow ? this.#clock.at(performance.now()) : 0
    for (let at = first; at <= sequence; at++) {
      const pending =
        accepted === undefined && this.#entries.get(at)?.message.isLogged === true ? undefined : this.#take(at)
      if (pending === undefined) continue
      this.counts.acceptedCount += pending.messageCount
      if (isSlow) this.#pace.accepted(pending, this.counts.acceptedCount, nowMs)
      pending.resolve((at === sequence ? accepted : undefined) ?? ACCEPTED)
    }
    this.#settled()
  }

  refuse(sequence: number, cause: Error): void {
    this.#reject(sequence, cause)
    this.#settled()
  }

  #reject(sequence: number, cause: Error): void {
    const pending = this.#take(sequence)
    if (pending === undefined) return
    this.counts.rejectedCount += pending.messageCount
    pending.reject(
      cause instanceof WebMQError
        ? cause
        : new WebMQError('E_BROKER_UNAVAILABLE', { detail: `it refused the message: ${cause.message}`, cause }),
    )
  }

  refuseAll(detail: string): void {
    for (const pending of this.#entries.all()) this.refuse(pending.message.sequence, this.#away(detail))
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#clock.stop()
  }

  /** Pending messages after this sequence, in order. */
  *messagesAfter(sequence: number): Generator<LinkMessage> {
    for (const { message } of this.#entries.all()) if (message.sequence > sequence) yield message
  }

  idle(): Promise<void> {
    if (this.counts.pendingCount === 0) return Promise.resolve()
    this.#idle ??= deferred()
    return this.#idle.promise
  }

  #sendAfter(sequence: number): void {
    this.#pace.begin(this.#clock.at(performance.now()))
    for (const message of [...this.messagesAfter(sequence)]) {
      if (this.#link === undefined) return
      if (this.#authorFor(message)?.isClosed === true)
        this.refuse(message.sequence, this.#away('its connection has ended'))
      else if (message.isLogged && message.sequence < this.#storedSequence)
        this.refuse(message.sequence, new Error('it has stored later ones'))
      else this.#give(this.#link, message)
    }
  }

  #authorFor({ messageId }: LinkMessage): PublishingConnection | undefined {
    return messageId === undefined ? undefined : this.#ids.authorOf(messageId)
  }

  #give(link: Link, message: LinkMessage): void {
    this.#sentSequence = Math.max(this.#sentSequence, message.sequence)
    try {
      link.publish(message)
    } catch (cause) {
      // It must not throw. If it does, its bug costs this message alone.
      this.refuse(message.sequence, cause instanceof Error ? cause : new Error(String(cause)))
    }
  }

  #take(sequence: number): Pending | undefined {
    const pending = this.#entries.take(sequence)
    if (pending === undefined) return undefined
    this.counts.pendingCount -= pending.messageCount
    this.counts.pendingBytes -= pending.byteCount
    return pending
  }

  #settled(): void {
    this.onRoom?.()
    if (this.counts.pendingCount > 0 || this.#idle === undefined) return
    this.#idle.resolve()
    this.#idle = undefined
  }

  #awaitDeadline(delayMs: number): void {
    this.#timerDueMs = performance.now() + delayMs
    this.#timer = setTimeout(() => this.#expire(), delayMs).unref()
  }

  /**
   * All messages have the same timeout, so the oldest expire first. Those that an author published behind them follow, also
   * what waits in sockets while the process stands still: its client may have gone, and never get the error.
   */
  #expire(): void {
    this.#timer = undefined
    const nowMs = performance.now()
    this.#hasReadFirst = !this.#hasReadFirst && nowMs - this.#timerDueMs > MAX_LATE_MS
    if (this.#hasReadFirst) {
      this.#awaitDeadline(READING_MS)
      return
    }
    const rejectedBefore = this.counts.rejectedCount
    const givenUp = new Map<PublishingConnection, Set<string>>()
    let nextMs: number | undefined
    for (const { message, deadlineMs } of this.#entries.all()) {
      const { key, sequence } = message
      const isExpired = deadlineMs <= nowMs
      if (!isExpired && givenUp.size === 0) {
        nextMs = deadlineMs
        break
      }
      const author = this.#authorFor(message)
      const keys = author && givenUp.get(author)
      if (isExpired || keys?.has(key) === true) {
        if (author !== undefined) givenUp.set(author, (keys ?? new Set()).add(key))
        const text = isExpired ? 'no answer' : 'no answer to an earlier message of its publisher'
        this.#reject(sequence, this.#late(sequence, `${text} within ${this.#limits.brokerTimeoutMs} ms`))
      } else nextMs ??= deadlineMs
    }
    if (nextMs !== undefined) this.#awaitDeadline(Math.ceil(nextMs - nowMs))
    // Their publishers see it first, so that nothing that waits for room overtakes what comes again. A timer may also fire within
    // the millisecond before the deadline: then nothing has changed.
    if (this.counts.rejectedCount > rejectedBefore) setImmediate(() => this.#settled())
  }

  /** A broker that was given the message, and takes others, is not away. */
  #late(sequence: number, detail: string): WebMQError {
    const isSent = this.#taker !== undefined && sequence <= this.#sentSequence
    return isSent ? new WebMQError('E_TIMEOUT', { detail: `the broker gave ${detail}` }) : this.#away(detail)
  }
}

/** What a message counts of the bytes that may wait. */
export function bytesOf(message: Pick<OutboundMessage, 'key' | 'payload' | 'attributes'>): number {
  return message.payload.length + textLengthOf(message) + MESSAGE_OVERHEAD_BYTES
}
