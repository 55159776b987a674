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
export const MAX_AWAITED_MS = 10_000

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

  /** Whether a message that was refused by {@link close} goes first. */
  get isAwaiting(): boolean {
    return this.#awaited !== undefined
  }

  /** The time until a message may pass; 0: now. */
  closedMs(limit: RateLimit, nowMs: number, messageId?: string): number {
    if (nowMs < this.#opensAtMs) return Math.ceil(this.#opensAtMs - nowMs)
    if (this.#awaited !== undefined) {
      if (this.#awaited !== messageId && nowMs < this.#awaitedUntilMs) return MIN_CLOSED_MS
      this.#awaited = undefined
    }
    this.#settle(limit, nowMs)
    if (this.#messages >= ENOUGH && this.#bytes >= ENOUGH) return 0
    const missingMs = Math.max(missing(this.#messages, limit.perSecond), missing(this.#bytes, limit.bytesPerSecond))
    this.#opensAtMs = nowMs + Math.max(MIN_CLOSED_MS, missingMs)
    return Math.ceil(this.#opensAtMs - nowMs)
  }

  /**
   * Closes it until then, whatever the limit. The message that is refused passes next: later ones, which its publisher may
   * have sent before it read the refusal, do not overtake it.
   */
  close(opensAtMs: number, nowMs: number, messageId: string | undefined): void {
    this.#opensAtMs = Math.max(this.#opensAtMs, opensAtMs)
    if (this.#awaited === undefined || nowMs >= this.#awaitedUntilMs) this.#awaited = messageId
    // Refused once more: it is waited for anew.
    if (this.#awaited === messageId) this.#awaitedUntilMs = opensAtMs + MAX_AWAITED_MS
  }

  /** Takes what messages cost that have passed. */
  pass(byteCount: number, messageCount = 1): void {
    this.#messages -= messageCount
    this.#bytes -= byteCount
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
