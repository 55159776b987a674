import { refusalOf } from 'webmq-client/protocol'
import { MAX_AWAITED_MS, RateGate, type RateLimit } from './rate-gate.js'

/** How fast a connection may publish, and all connections of its user together. */
export interface PublishLimits {
  readonly ofConnection: RateLimit
  readonly ofUser: RateLimit
}

/** Who reached a limit; `broker`: it is too slow for what all publish. */
export type RateScope = 'connection' | 'user' | 'broker'

const ANY_RATE: RateLimit = { perSecond: undefined, bytesPerSecond: undefined, burstMs: 0 }
/** Of publishers without limits, who wait for a slow broker as well. */
export const UNLIMITED: PublishLimits = { ofConnection: ANY_RATE, ofUser: ANY_RATE }

interface UserGate {
  readonly gate: RateGate
  limit: RateLimit
}

/** For so long a connection waits for a broker that was too slow. */
const SLOW_BROKER_MS = 1_000

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

  /** @param now A monotonic clock, in milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
    this.#generationStartMs = now()
  }

  /** Refused publishes. */
  get refusedCounts(): Readonly<Record<RateScope, number>> {
    return { ...this.#refusedCounts }
  }

  /** Users with a gate. */
  get userCount(): number {
    return this.#young.size + this.#old.size
  }

  /**
   * Counts publishes of a connection, if there is one, and of its user. Several pass together or not at all.
   * @param gate Of the connection; absent for publishes over HTTP, which only the limit of the user holds for.
   * @param messageId Of one message.
   * @param isCongested The broker is too slow for more.
   * @throws {WebMQError} `E_RATE_LIMIT` (retryable), with the `retryAfterMs` that is told to the client; nothing was counted.
   */
  pass(
    gate: RateGate | undefined,
    userId: string | undefined,
    { ofConnection, ofUser }: PublishLimits,
    byteCount: number,
    messageCount = 1,
    messageId?: string,
    isCongested = false,
  ): void {
    const nowMs = this.#now()
    if (isCongested) {
      this.isPausing = true
      const opensAtMs = nowMs + SLOW_BROKER_MS
      this.#pausedUntilMs = opensAtMs + MAX_AWAITED_MS
      gate?.close(opensAtMs, nowMs, messageId)
      this.#refuse('broker', SLOW_BROKER_MS, 'the broker accepts messages more slowly than they come')
    }
    this.isPausing = nowMs < this.#pausedUntilMs
    if (gate !== undefined) this.#assertOpen(gate, ofConnection, 'connection', nowMs, messageId)
    if (userId !== undefined && isLimited(ofUser)) this.#passUser(userId, ofUser, byteCount, nowMs, messageCount)
    gate?.pass(byteCount, messageCount)
  }

  #passUser(userId: string, limit: RateLimit, byteCount: number, nowMs: number, messageCount: number): void {
    const user = this.#userGate(userId, limit, nowMs)
    this.#assertOpen(user.gate, limit, 'user', nowMs)
    user.limit = limit
    user.gate.pass(byteCount, messageCount)
  }

  #assertOpen(gate: RateGate, limit: RateLimit, scope: RateScope, nowMs: number, messageId?: string): void {
    const retryAfterMs = gate.closedMs(limit, nowMs, messageId)
    if (retryAfterMs === 0) return
    if (isLimited(limit) && !gate.isAwaiting)
      this.#refuse(scope, retryAfterMs, `this ${scope} publishes too fast, ${describe(limit)}`)
    this.#refuse('broker', retryAfterMs, 'earlier messages of this connection wait for the broker')
  }

  #refuse(scope: RateScope, retryAfterMs: number, detail: string): never {
    this.#refusedCounts[scope]++
    throw Object.assign(refusalOf('E_RATE_LIMIT', { detail }), { retryAfterMs })
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

/** Whether there is a limit at all. */
export function isLimited({ perSecond, bytesPerSecond }: RateLimit): boolean {
  return perSecond !== undefined || bytesPerSecond !== undefined
}

function describe({ perSecond, bytesPerSecond }: RateLimit): string {
  const messages = perSecond === undefined ? [] : [`${perSecond} messages`]
  const bytes = bytesPerSecond === undefined ? [] : [`${bytesPerSecond} bytes`]
  return `at most ${[...messages, ...bytes].join(' and ')} per second`
}
