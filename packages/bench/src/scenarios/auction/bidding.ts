import type { RecordableHistogram } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { nowUs } from '../../measure/clock.js'
import { createLatencyHistogram, recordUs } from '../../measure/latency-histogram.js'
import type { GatewayProcess } from './gateway-process.js'

/** A round of bids: as many on each item. */
export interface BiddingPlan {
  readonly items: readonly string[]
  /** Bids of earlier rounds on each item. */
  readonly firstBid: number
  readonly bids: number
  readonly intervalMs: number
  readonly signal: AbortSignal
  /** Called after each accepted bid. */
  onBid?(acceptedCount: number): void
}

export interface BiddingResult {
  readonly acceptedCount: number
  /** From request to answer. */
  readonly answers: RecordableHistogram
}

/** Delay of the first bid. */
const LEAD_MS = 50

/** Name of an item, by its number or what stands for it. */
export function itemName(item: number | string): string {
  return `item-${item}`
}

/** Key of the events of an item. */
export function itemKey(item: number | string): string {
  return `auction.${itemName(item)}.bid`
}

/**
 * Bids on every item, one bid per item and interval, each higher than the last. The items take turns within the interval.
 * A bid that is due while the one before it is not answered waits for that answer.
 * @throws {RunError} when the gateway refuses one.
 */
export async function placeBids(gateway: GatewayProcess, plan: BiddingPlan): Promise<BiddingResult> {
  const { items, firstBid, bids, intervalMs, signal } = plan
  const answers = createLatencyHistogram()
  const startUs = nowUs() + LEAD_MS * 1_000
  let acceptedCount = 0
  const bidOn = async (item: string, index: number) => {
    for (let turn = 0; turn < bids; turn++) {
      const dueUs = startUs + (turn + index / items.length) * intervalMs * 1_000
      await sleep(Math.max(0, (dueUs - nowUs()) / 1_000), undefined, { signal })
      const number = firstBid + turn + 1
      const askedUs = nowUs()
      await gateway.bid(item, { bidId: `bid-${number}`, bidder: `bidder-${number % 7}`, amount: number })
      recordUs(answers, nowUs() - askedUs)
      acceptedCount++
      plan.onBid?.(acceptedCount)
    }
  }
  await Promise.all(items.map(bidOn))
  return { acceptedCount, answers }
}
