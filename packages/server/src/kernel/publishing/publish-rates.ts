import { refusalOf, type WebMQError } from 'webmq-client/protocol'

/** How fast somebody may publish; absent: as fast as they can. */
export interface RateLimit {
  readonly perSecond: number | undefined
  readonly bytesPerSecond: number | undefined
  /** What may come at once after a rest, as the time in which it would come at the rate. */
  readonly burstMs: number
}

/**
 * A gate that has closed stays closed for this time at least. What its publisher has sent before it knew is refused as
 * well, so that all of it comes again in order, instead of some of it in between.
 */
const MIN_CLOSED_MS = 250

/** A refused message that comes again goes first. For so long others wait for it: a client may not send it again. */
const MAX_AWAITED_MS = 5_000

/** Messages of a connection whose refusals are counted. They are the next ones to come. */
const MAX_REFUSED_IDS = 32

const BEHIND = 'earlier messages of this connection wait for the broker'

/** Which of two refused messages of a connection came first: one that went further did. */
type Age = typeof REFUSED_AT_GATE | typeof REFUSED_BY_BROKER | typeof GIVEN
const REFUSED_AT_GATE = 0
/** It had passed, and waited for the broker. */
const REFUSED_BY_BROKER = 1
/** The broker had it, and did not answer. */
const GIVEN = 2

/** One message or byte. Sums of fractions may be a little less. */
const ENOUGH = 1 - 1e-6

/**
 * Two token buckets, for messages and for bytes. A message passes while both hold something and takes what it costs, so one
 * larger than a bucket passes too, and is paid off later. The limit is an argument: a new token may bring another one.
 */
export class RateGate {
  #messages = Number.POSITIVE_INFINITY
  #bytes = Number.POSITIVE_INFINITY
  #settledMs = Number.NEGATIVE_INFINITY
  #opensAtMs = 0
  /** Id of the first message that was refused, while all others wait for it. */
  #awaited: string | undefined
  #awaitedUntilMs = Number.NEGATIVE_INFINITY
  /** Ids of the last others that were refused since. */
  #behind: Set<string> | undefined
  /** How often messages were refused that have not passed since, by their ids. */
  #refusedCounts: Map<string, number> | undefined
  #awaitedAge: Age = REFUSED_AT_GATE
  #closedBy: RateScope = 'connection'

  /** When it opens, as the clock of its callers. */
  get opensAtMs(): number {
    return this.#opensAtMs
  }

  /** Why it is closed, or was last. */
  get closedBy(): RateScope {
    return this.#closedBy
  }

  /** The time until a message may pass; 0: now. */
  closedMs(limit: RateLimit, nowMs: number, repeatId?: string): number {
    if (nowMs < this.#opensAtMs) {
      if (this.#opensAtMs < this.#awaitedUntilMs) this.#awaited ??= repeatId
      return Math.ceil(this.#opensAtMs - nowMs)
    }
    if (this.#awaited !== undefined) {
      if (this.#awaited !== repeatId && nowMs < this.#awaitedUntilMs && !this.#isAwaitedInVain(repeatId))
        return MIN_CLOSED_MS
      this.#awaited = undefined
      this.#behind = undefined
      this.#awaitedAge = REFUSED_AT_GATE
    }
    this.#settle(limit, nowMs)
    if (this.#messages >= ENOUGH && this.#bytes >= ENOUGH) return 0
    const missingMs = Math.max(missing(this.#messages, limit.perSecond), missing(this.#bytes, limit.bytesPerSecond))
    this.close('connection', nowMs + Math.max(MIN_CLOSED_MS, missingMs), nowMs, repeatId)
    return Math.ceil(this.#opensAtMs - nowMs)
  }

  /**
   * Closes it until then, whatever the limit. The message that is refused passes next: later ones, which its publisher may
   * have sent before it read the refusal, do not overtake it.
   * @param repeatId Its id; `undefined` if its publisher will not send it again.
   * @param isGiven The broker was given it, and has not answered.
   */
  close(by: RateScope, opensAtMs: number, nowMs: number, repeatId: string | undefined, isGiven = false): void {
    this.#closedBy = by
    this.#opensAtMs = Math.max(this.#opensAtMs, opensAtMs)
    // What has not come again by now does not.
    if (nowMs >= this.#awaitedUntilMs) this.#refusedCounts = undefined
    const age = by !== 'broker' ? REFUSED_AT_GATE : isGiven ? GIVEN : REFUSED_BY_BROKER
    const isOlder = age > this.#awaitedAge
    if (this.#awaited === undefined || nowMs >= this.#awaitedUntilMs || isOlder) {
      this.#awaited = repeatId
      this.#awaitedAge = age
    }
    if (this.#awaited !== repeatId) return
    // Refused once more: it is waited for anew.
    this.#awaitedUntilMs = opensAtMs + MAX_AWAITED_MS
    this.#behind = undefined
  }

  /**
   * A client repeats in order: when another one comes again, the awaited one was typing or a cursor, which nobody sends again.
   * One that the broker was given may be older, and is answered later, than one that comes again.
   */
  #isAwaitedInVain(repeatId: string | undefined): boolean {
    return this.#awaitedAge !== GIVEN && repeatId !== undefined && this.#behind?.has(repeatId) === true
  }

  /** Whether another message goes before this one, which has passed, and waited since. One that did not pass is later. */
  isBehind(repeatId: string | undefined, nowMs: number): boolean {
    const isWaiting = this.#awaited !== undefined && nowMs < this.#awaitedUntilMs
    return isWaiting && this.#awaitedAge !== REFUSED_AT_GATE && this.#awaited !== repeatId
  }

  /** Counts a refusal. @param count How often the message was refused by now, if its gate does not know. */
  refused(repeatId: string | undefined, count = (this.#refusedCounts?.get(repeatId ?? '') ?? 0) + 1): void {
    if (repeatId === undefined) return
    if (this.#awaited !== undefined && this.#awaited !== repeatId) this.#addBehind(repeatId)
    this.#refusedCounts ??= new Map()
    const isKnown = this.#refusedCounts.has(repeatId)
    if (isKnown || this.#refusedCounts.size < MAX_REFUSED_IDS) this.#refusedCounts.set(repeatId, count)
  }

  #addBehind(repeatId: string): void {
    this.#behind ??= new Set()
    this.#behind.add(repeatId)
    if (this.#behind.size <= MAX_REFUSED_IDS) return
    for (const oldest of this.#behind) {
      this.#behind.delete(oldest)
      return
    }
  }

  /** Takes what messages cost that have passed. Returns how often they were refused before. */
  pass(byteCount: number, messageCount = 1, repeatId?: string): number {
    this.#messages -= messageCount
    this.#bytes -= byteCount
    if (repeatId === undefined || this.#refusedCounts === undefined) return 0
    const count = this.#refusedCounts.get(repeatId) ?? 0
    this.#refusedCounts.delete(repeatId)
    if (this.#refusedCounts.size === 0) this.#refusedCounts = undefined
    return count
  }

  /** Whether it is as good as new. */
  isFull(limit: RateLimit, nowMs: number): boolean {
    if (nowMs < this.#opensAtMs || (this.#awaited !== undefined && nowMs < this.#awaitedUntilMs)) return false
    this.#settle(limit, nowMs)
    const { perSecond, bytesPerSecond, burstMs } = limit
    return this.#messages >= capacity(perSecond, burstMs) && this.#bytes >= capacity(bytesPerSecond, burstMs)
  }

  #settle({ perSecond, bytesPerSecond, burstMs }: RateLimit, nowMs: number): void {
    const passedMs = nowMs - this.#settledMs
    this.#settledMs = nowMs
    this.#messages = refilled(this.#messages, perSecond, passedMs, burstMs)
    this.#bytes = refilled(this.#bytes, bytesPerSecond, passedMs, burstMs)
  }
}

/** At least one message or byte may come. */
function capacity(perSecond: number | undefined, burstMs: number): number {
  return perSecond === undefined ? Number.POSITIVE_INFINITY : Math.max(1, (perSecond * burstMs) / 1_000)
}

function refilled(tokens: number, perSecond: number | undefined, passedMs: number, burstMs: number): number {
  if (perSecond === undefined) return Number.POSITIVE_INFINITY
  return Math.min(capacity(perSecond, burstMs), tokens + (passedMs * perSecond) / 1_000)
}

function missing(tokens: number, perSecond: number | undefined): number {
  return perSecond === undefined || tokens >= ENOUGH ? 0 : ((1 - tokens) * 1_000) / perSecond
}

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
