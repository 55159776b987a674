import { refusalOf } from 'webmq-client/protocol'
import { type Actor, clientNameOf } from '../identity/actor.js'
import type { ConnectionId } from '../ports/transport.js'
import type { WordLimits } from '../ports/word-limits.js'
import { type PublishLimits, UNLIMITED } from './publish-rates.js'
import type { RateGate, RateLimit } from './rate-gate.js'

export interface AuthorLimits extends Pick<WordLimits, 'maxWords'> {
  readonly maxPayloadBytes: number
  /** Bytes of one connection, or of one caller, that may wait for the broker [P-7.8]: none can use up the whole budget. */
  readonly maxPendingPublishBytes: number
  /** `undefined`: publishes may come as fast as they can. */
  readonly publishing: PublishLimits | undefined
}

/**
 * Told of each message that arrives behind one that waits, with its bytes, or with infinite ones when there is no room for it.
 * Returns whether the message that waits has been refused, now or before.
 */
export type Behind = (byteCount: number) => boolean

export interface Author extends Actor {
  readonly limits: AuthorLimits
  /** Bytes of its publishes that wait for hooks and the broker, with an overhead for each. */
  pendingBytes: number
  /** The same of all connections of its client; absent without a session. */
  readonly clientPendingBytes?: number
  /** Its session has ended: what a hook has kept waiting is not published any more. */
  readonly isClosed: boolean
  /** Of its session. */
  readonly connection?: ConnectionId
  /** What its publishes pass, beside the gate of its user; absent without a session. */
  publishGateOf?(limit: RateLimit): RateGate
  /** When the message at hand arrived, if it has waited behind others. As `performance.now()`. */
  readonly arrivedMs?: number | undefined
  /**
   * While a hook decides about a message, or it waits for the broker, those behind it must not overtake it.
   * @param decided Never rejects.
   */
  hold?(decided: Promise<void>, behind?: Behind): void
  /** Steps that the router has taken for its message. */
  matched?(stepCount: number): void
}

/** Bytes of publishes that wait, by client, see {@link clientNameOf}. */
export type PendingByClient = Map<string, number>

/** A client may have as many bytes that wait as so many of its connections. */
const CLIENT_CONNECTIONS = 2

/**
 * Somebody without a session, for the time of one request.
 * @param isGone What has to be written or read for it yet is not.
 */
export function requestAuthor(
  actor: Actor,
  limits: AuthorLimits,
  pending: PendingByClient,
  isGone: () => boolean = () => false,
): Author {
  const { door, userId, claims, identity, address, charge, meter } = actor
  const name = clientNameOf(actor)
  return {
    ...{ door, id: '', userId, claims, identity, address, charge, meter, limits },
    get isClosed() {
      return isGone()
    },
    get pendingBytes() {
      return pending.get(name) ?? 0
    },
    set pendingBytes(byteCount) {
      countPending(pending, name, byteCount - this.pendingBytes)
    },
  }
}

/** The limits of the application itself: those of every message, and none for what waits or comes fast. */
export function trustedLimits(options: Pick<AuthorLimits, 'maxWords' | 'maxPayloadBytes'>): AuthorLimits {
  return {
    // Read on each use: a reload changes them.
    get maxWords() {
      return options.maxWords
    },
    get maxPayloadBytes() {
      return options.maxPayloadBytes
    },
    maxPendingPublishBytes: Number.POSITIVE_INFINITY,
    publishing: undefined,
  }
}

export function countPending(pending: PendingByClient, client: string, moreBytes: number): void {
  const byteCount = (pending.get(client) ?? 0) + moreBytes
  if (byteCount > 0) pending.set(client, byteCount)
  else pending.delete(client)
}

/** One that is larger than the bound passes while nothing waits: a batch, which its body bounds. */
export function assertRoom(author: Author, byteCount: number): void {
  const { connection, limits, pendingBytes } = author
  const isFull = pendingBytes > 0 && pendingBytes + byteCount > limits.maxPendingPublishBytes
  if (!isFull && hasClientRoom(author, byteCount)) return
  const whose = connection === undefined ? 'caller' : isFull ? 'connection' : 'client'
  throw refusalOf('E_BROKER_UNAVAILABLE', { detail: `too many messages of this ${whose} wait for the broker` })
}

/** Whether so many bytes more of its client may wait. */
export function hasClientRoom({ limits, clientPendingBytes: bytes = 0 }: Author, byteCount = 0): boolean {
  return bytes === 0 || bytes + byteCount <= CLIENT_CONNECTIONS * limits.maxPendingPublishBytes
}

/** What a publish of the author passes; absent without a session. */
export function gateOf(author: Author): RateGate | undefined {
  return author.publishGateOf?.((author.limits.publishing ?? UNLIMITED).ofConnection)
}
