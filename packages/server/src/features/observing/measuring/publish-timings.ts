import { copyBytes } from '../../../kernel/base/copy-bytes.js'
import type { InboundMessage, OutboundMessage } from '../../../kernel/ports/broker.js'
import { Histogram } from './histogram.js'

/** Publishes that come faster than this are sampled: 10,000 per second. */
const SAMPLED_BELOW_MS = 0.1
/** Publishes of which one is then measured. Measuring takes about 1.5 us, which makes 6 ns per publish. */
const SAMPLE_EVERY = 256
/** A message that has not come back after this time is not waited for any longer. */
const MAX_LAG_MS = 5_000
/** A larger payload is not copied to find the message again. */
const MAX_COMPARED_BYTES = 4_096

export interface PublishTiming {
  accepted(): void
}

interface Awaited {
  readonly key: string
  readonly payload: Uint8Array
  readonly sentMs: number
}

export interface PublishTimingsContext {
  /** Whether anyone on this node listens to the key. */
  readonly hasListeners: (key: string) => boolean
  /** A clock that never goes back, in milliseconds. */
  readonly now?: () => number
}

/**
 * Measures how long publishes take. Each is measured up to 10,000 per second. Above that one of 256 is, and stands for all
 * of them. A publish that is not measured costs a decrement.
 */
export class PublishTimings {
  /** From the receipt of a publish until the broker has accepted it. */
  readonly publish = new Histogram()
  /** From a publish to the broker until it has accepted it. */
  readonly broker = new Histogram()
  /** From a publish on this node until it was passed to its listeners on this node. One message at a time is followed. */
  readonly lag = new Histogram()
  /** When the message that is being handled was received, if it has waited for its turn; otherwise 0. */
  receivedMs = 0
  readonly #hasListeners: PublishTimingsContext['hasListeners']
  readonly #now: () => number
  #leftCount = 0
  #every = 1
  #measuredMs = Number.NEGATIVE_INFINITY
  #awaited: Awaited | undefined

  constructor({ hasListeners, now = () => performance.now() }: PublishTimingsContext) {
    this.#hasListeners = hasListeners
    this.#now = now
  }

  get isAwaiting(): boolean {
    return this.#awaited !== undefined
  }

  /** Call it directly before the broker gets the message. Returns `undefined` when this publish is not measured. */
  begin(message: OutboundMessage): PublishTiming | undefined {
    if (this.#leftCount > 0) {
      this.#leftCount--
      return undefined
    }
    return this.#measure(message)
  }

  /** Measures the next publish. Otherwise a node that has fallen silent would leave out many of the few that come. */
  measureNext(): void {
    // The next one stands for those that were left out so far.
    this.#every -= this.#leftCount
    this.#leftCount = 0
  }

  delivered({ key, payload }: InboundMessage): void {
    const awaited = this.#awaited
    if (awaited === undefined || awaited.key !== key || Buffer.compare(awaited.payload, payload) !== 0) return
    this.#awaited = undefined
    this.lag.observe(this.#now() - awaited.sentMs)
  }

  #measure(message: OutboundMessage): PublishTiming {
    const sentMs = this.#now()
    const receivedMs = this.receivedMs === 0 ? sentMs : this.receivedMs
    // It stands for those that were left out since the last one.
    const weight = this.#every
    this.#every = sentMs - this.#measuredMs < weight * SAMPLED_BELOW_MS ? SAMPLE_EVERY : 1
    this.#leftCount = this.#every - 1
    this.#measuredMs = sentMs
    this.#await(message, sentMs)
    return {
      accepted: () => {
        const nowMs = this.#now()
        this.publish.observe(nowMs - receivedMs, weight)
        this.broker.observe(nowMs - sentMs, weight)
      },
    }
  }

  #await({ key, payload }: OutboundMessage, sentMs: number): void {
    if (this.#awaited !== undefined && sentMs - this.#awaited.sentMs < MAX_LAG_MS) return
    const isFollowed = payload.length <= MAX_COMPARED_BYTES && this.#hasListeners(key)
    this.#awaited = isFollowed ? { key, payload: copyBytes(payload), sentMs } : undefined
  }
}
