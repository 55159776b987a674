export type SeenBids = ReadonlyMap<number, number>

/** Accepted bids compared with received ones, over all items and connections. */
export interface Reconciliation {
  readonly acceptedCount: number
  /** Deliveries that should have been. */
  readonly expectedCount: number
  /** Accepted bids that a connection did not receive, summed over all connections. */
  readonly missingCount: number
  /** Received bids that Redis does not know. */
  readonly unknownCount: number
  /** Numbers that Redis itself lacks, or has twice: an item counts from 1 without holes. */
  readonly holeCount: number
}

/** One item: the numbers that Redis has, the connections that listen, and what they saw. */
export interface ReconciledItem {
  readonly accepted: readonly number[]
  readonly connections: number
  readonly seen: SeenBids
}

/** Compares Redis with what the clients saw. */
export function reconcile(items: readonly ReconciledItem[]): Reconciliation {
  const total = { acceptedCount: 0, expectedCount: 0, missingCount: 0, unknownCount: 0, holeCount: 0 }
  for (const { accepted, connections, seen } of items) {
    total.acceptedCount += accepted.length
    total.expectedCount += accepted.length * connections
    for (const seq of accepted) total.missingCount += Math.max(0, connections - (seen.get(seq) ?? 0))
    total.holeCount += accepted.filter((seq, index) => seq !== index + 1).length
    const known = new Set(accepted)
    for (const [seq, count] of seen) if (!known.has(seq)) total.unknownCount += count
  }
  return total
}
