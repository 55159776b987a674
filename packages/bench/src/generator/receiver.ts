import type { RecordableHistogram } from 'node:perf_hooks'
import { decodePayload, type PayloadBounds } from '../load/payload.js'
import { DeliveryTracker } from '../measure/delivery-tracker.js'
import { recordUs } from '../measure/latency-histogram.js'

/** What arrived at the clients of one backend, without the warm-up. */
export interface DeliveryTally {
  /** First copies; late ones too. */
  deliveredCount: number
  /** Of these, how many arrived before the window ended. */
  deliveredInWindowCount: number
  /** Second and further copies. */
  duplicateCount: number
  /** Messages that arrived after a later one of the same publisher and key. */
  reorderedCount: number
  /** Messages that are not of this run, are damaged, or arrived at a listener of another key. */
  unexpectedCount: number
  /** From the intended send time to the call of the listener, microseconds; first copies. */
  readonly latency: RecordableHistogram
}

/** The window on the machine's monotonic clock, in microseconds. */
export interface Window {
  readonly startUs: number
  readonly endUs: number
}

/** The kind of an arrival: a counter of the tally, or the warm-up. */
export type Arrival = 'delivered' | 'reordered' | 'duplicate' | 'unexpected' | 'warmup'

/** Counts all messages of one client. */
export class Receiver {
  readonly #bounds: PayloadBounds
  readonly #tracker: DeliveryTracker
  readonly #tally: DeliveryTally

  /** @param tally Shared by the receivers of one backend in one thread. */
  constructor(slotCount: number, bounds: PayloadBounds, tally: DeliveryTally) {
    this.#bounds = bounds
    this.#tracker = new DeliveryTracker(slotCount, bounds.clientCount)
    this.#tally = tally
  }

  /**
   * @param slot The listen that was called.
   * @param isItsKey Whether the message's key is the one of that listen.
   */
  receive(slot: number, isItsKey: boolean, payload: unknown, window: Window, atUs: number): Arrival {
    const tally = this.#tally
    const message = isItsKey ? decodePayload(payload, this.#bounds) : undefined
    if (message === undefined) {
      tally.unexpectedCount++
      return 'unexpected'
    }
    if (message.n < 0) return 'warmup'

    const verdict = this.#tracker.record(slot, message.p, message.q)
    if (verdict === 'duplicate') {
      tally.duplicateCount++
      return verdict
    }
    if (verdict === 'reordered') tally.reorderedCount++
    tally.deliveredCount++
    if (atUs < window.endUs) tally.deliveredInWindowCount++
    recordUs(tally.latency, atUs - (window.startUs + message.t))
    return verdict
  }
}
