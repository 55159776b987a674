/** How fast somebody may publish; absent: as fast as they can. */
export interface RateLimit {
  readonly perSecond: number | undefined
  readonly bytesPerSecond: number | undefined
  /** What may come at once after a rest, as the time in which it would come at the rate. */
  readonly burstMs: number
}

/** Who reached a limit; `broker`: it is too slow for what all publish. */
export type RateScope = 'connection' | 'user' | 'broker'

/**
 * A gate that has closed stays closed for this time at least. What its publisher has sent before it knew is refused as
 * well, so that all of it comes again in order, instead of some of it in between.
 */
export const MIN_CLOSED_MS = 250

/** A refused message that comes again goes first. For so long others wait for it: a client may not send it again. */
export const MAX_AWAITED_MS = 5_000

/** Messages of a connection whose refusals are counted. They are the next ones to come. */
const MAX_REFUSED_IDS = 32

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
