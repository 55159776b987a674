import { refusalOf, type WebMQError } from 'webmq-client/protocol'
import { MAX_AWAITED_MS, MIN_CLOSED_MS, RateGate, type RateLimit, type RateScope } from './rate-gate.js'

const BEHIND = 'earlier messages of this connection wait for the broker'

/** How fast a connection may publish, and all connections of its user together. */
export interface PublishLimits {
  readonly ofConnection: RateLimit
  readonly ofUser: RateLimit
}

const ANY_RATE: RateLimit = { perSecond: undefined, bytesPerSecond: undefined, burstMs: 0 }
/** Of publishers without limits, who wait for a slow broker as well. */
export const UNLIMITED: PublishLimits = { ofConnection: ANY_RATE, ofUser: ANY_RATE }

interface UserGate {
  readonly gate: RateGate
  limit: RateLimit
}

/** Gates that were not used for this time are looked at, and dropped if they are as good as new. */
const MIN_GENERATION_MS = 10_000

/**
 * Refuses publishes that come too fast. Knows the gates of users, each of which all connections of the user to this node
 * share, whatever protocol they speak. A gate exists only for users who have published lately.
 */
export class PublishRates {
  readonly #now: () => number
  /** Two generations instead of a timer per gate. */
  #young = new Map<string, UserGate>()
  #old = new Map<string, UserGate>()
  #generationStartMs: number
  #pausedUntilMs = Number.NEGATIVE_INFINITY
  /** Whether connections without limits have to pass as well: the broker was too slow for some of them lately. */
  isPausing = false
  readonly #refusedCounts: Record<RateScope, number> = { connection: 0, user: 0, broker: 0 }
  /** The last one: those behind it in a flood are the same, and to make one takes longer than to publish a message. */
  #last: { readonly detail: string; readonly error: WebMQError & { readonly retryAfterMs: number } } | undefined

  /** @param now A monotonic clock, in milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
    this.#generationStartMs = now()
  }

  get refusedCounts(): Readonly<Record<RateScope, number>> {
    return { ...this.#refusedCounts }
  }

  get userCount(): number {
    return this.#young.size + this.#old.size
  }

  /**
   * Counts publishes of a connection, if there is one, and of its user. Several pass together or not at all.
   * @param gate Of the connection; absent for publishes over HTTP, which only the limit of the user holds for.
   * @param repeatId As in {@link RateGate.close}.
   * @returns How often the message was refused before.
   * @throws {WebMQError} `E_RATE_LIMIT` (retryable), with the `retryAfterMs` that is told to the client; nothing was counted.
   */
  pass(
    gate: RateGate | undefined,
    userId: string | undefined,
    { ofConnection, ofUser }: PublishLimits,
    byteCount: number,
    messageCount = 1,
    repeatId?: string,
  ): number {
    const nowMs = this.#now()
    this.isPausing = nowMs < this.#pausedUntilMs
    const closedMs = gate?.closedMs(ofConnection, nowMs, repeatId) ?? 0
    if (gate !== undefined && closedMs > 0) {
      gate.refused(repeatId)
      throw this.#refusal(gate.closedBy, closedMs, tooFast(gate.closedBy, { ofConnection, ofUser }))
    }
    if (userId !== undefined && isLimited(ofUser)) {
      const user = this.#userGate(userId, ofUser, nowMs)
      user.limit = ofUser
      const userClosedMs = user.gate.closedMs(ofUser, nowMs)
      if (userClosedMs > 0) {
        gate?.close('user', nowMs + userClosedMs, nowMs, repeatId)
        gate?.refused(repeatId)
        throw this.#refusal('user', userClosedMs, tooFast('user', { ofConnection, ofUser }))
      }
      user.gate.pass(byteCount, messageCount)
    }
    return gate?.pass(byteCount, messageCount, repeatId) ?? 0
  }

  /**
   * The broker is too slow for a message: nothing of its connection passes until then, and that message first.
   * @param refusedCount How often it was refused before.
   * @returns {WebMQError} `E_RATE_LIMIT` with `retryAfterMs`.
   */
  refusedByBroker(
    gate: RateGate | undefined,
    repeatId: string | undefined,
    retryAfterMs: number,
    refusedCount = 0,
  ): WebMQError {
    this.#close(gate, repeatId, retryAfterMs, false)
    gate?.refused(repeatId, refusedCount + 1)
    return this.#refusal('broker', retryAfterMs, 'the broker accepts messages more slowly than they come')
  }

  /**
   * As {@link refusedByBroker}, of a message that the broker was given and has not answered. It may be accepted yet, and is
   * given to the broker again before later ones.
   * @param retryAfterMs Called unless the connection has been told a time before.
   * @returns The error, with `retryAfterMs`.
   */
  unanswered(gate: RateGate, repeatId: string, error: WebMQError, retryAfterMs: () => number): WebMQError {
    const closedMs = gate.opensAtMs - this.#now()
    const againMs = closedMs > 0 ? Math.ceil(closedMs) : retryAfterMs()
    this.#close(gate, repeatId, againMs, true)
    return Object.assign(error, { retryAfterMs: againMs })
  }

  /**
   * A message has waited for the broker since it passed. Meanwhile an earlier one of its connection was refused.
   * @throws {WebMQError} `E_RATE_LIMIT` with `retryAfterMs`: that one goes first.
   */
  assertFirst(gate: RateGate, repeatId: string | undefined): void {
    const nowMs = this.#now()
    if (!gate.isBehind(repeatId, nowMs)) return
    throw this.#refusal('broker', Math.max(MIN_CLOSED_MS, Math.ceil(gate.opensAtMs - nowMs)), BEHIND)
  }

  #close(gate: RateGate | undefined, repeatId: string | undefined, retryAfterMs: number, isGiven: boolean): void {
    const nowMs = this.#now()
    const opensAtMs = nowMs + retryAfterMs
    this.isPausing = true
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, opensAtMs + MAX_AWAITED_MS)
    gate?.close('broker', opensAtMs, nowMs, repeatId, isGiven)
  }

  #refusal(scope: RateScope, retryAfterMs: number, detail: string): WebMQError {
    this.#refusedCounts[scope]++
    if (this.#last?.error.retryAfterMs !== retryAfterMs || this.#last.detail !== detail)
      this.#last = { detail, error: Object.assign(refusalOf('E_RATE_LIMIT', { detail }), { retryAfterMs }) }
    return this.#last.error
  }

  #userGate(userId: string, limit: RateLimit, nowMs: number): UserGate {
    const known = this.#young.get(userId)
    if (known !== undefined) return known
    if (nowMs - this.#generationStartMs >= MIN_GENERATION_MS) {
      const old = this.#old
      this.#old = this.#young
      this.#young = new Map()
      this.#generationStartMs = nowMs
      for (const [id, user] of old) if (!user.gate.isFull(user.limit, nowMs)) this.#young.set(id, user)
    }
    const user = this.#young.get(userId) ?? this.#old.get(userId) ?? { gate: new RateGate(), limit }
    this.#old.delete(userId)
    this.#young.set(userId, user)
    return user
  }
}

export function isLimited({ perSecond, bytesPerSecond }: RateLimit): boolean {
  return perSecond !== undefined || bytesPerSecond !== undefined
}

function tooFast(by: RateScope, { ofConnection, ofUser }: PublishLimits): string {
  if (by === 'broker') return BEHIND
  const { perSecond, bytesPerSecond } = by === 'user' ? ofUser : ofConnection
  const messages = perSecond === undefined ? [] : [`${perSecond} messages`]
  const bytes = bytesPerSecond === undefined ? [] : [`${bytesPerSecond} bytes`]
  return `this ${by} publishes too fast, at most ${[...messages, ...bytes].join(' and ')} per second`
}
