import { type GrowthPoint, growthExponent } from './growth.js'

/** A round of the published experiment: bids to one item, over AWS machines. */
export interface PublishedRound {
  readonly title: string
  readonly nodes: number
  readonly tiers: readonly (GrowthPoint & { readonly delivered: string })[]
}

/** Where the figures come from; printed under the table. */
export const PUBLISHED_ORIGIN =
  'Published: "Experiment 2: WebSocket Fan-Out Scalability", 10 bids 5 s apart, Go services on AWS Fargate, NATS and ElastiCache; clients on 1 to 3 machines. Round 2 has negative latencies and round 4 latencies that were shifted by the offset of the clocks. Round 3 is left out, because its authors call it unreliable.'

/** P99 in milliseconds, as published. Where only a chart or nothing was published, the tier is absent. */
export const PUBLISHED_ROUNDS: readonly PublishedRound[] = [
  {
    title: 'round 1',
    nodes: 2,
    tiers: [
      { connections: 100, latencyMs: 20.98, delivered: '100%' },
      { connections: 1_000, latencyMs: 105.31, delivered: '100%' },
      { connections: 4_500, latencyMs: 971.49, delivered: '89%' },
    ],
  },
  {
    title: 'round 2',
    nodes: 2,
    tiers: [
      { connections: 100, latencyMs: 22.53, delivered: '100%' },
      { connections: 1_000, latencyMs: 163.83, delivered: '100%' },
      { connections: 10_000, latencyMs: 512.33, delivered: '90%' },
    ],
  },
  {
    title: 'round 4',
    nodes: 4,
    tiers: [
      { connections: 100, latencyMs: 16.63, delivered: '100%' },
      { connections: 1_000, latencyMs: 171.87, delivered: '100%' },
      { connections: 3_500, latencyMs: 318.94, delivered: '100%' },
      { connections: 10_000, latencyMs: 445.62, delivered: '90-100%' },
    ],
  },
]

/** What doubling the nodes brought at about 10,000 connections, as published: rounds 2 and 4. */
export const PUBLISHED_IMPROVEMENT = {
  from: 2,
  to: 4,
  gains: { 'latencyMs.p50': '16.3%', 'latencyMs.p95': '11.7%', 'latencyMs.p99': '13.0%', deliveryRate: '10%' },
} as const

/** The exponent of a published round, fitted as ours is. */
export function publishedExponent({ tiers }: PublishedRound): number | null {
  return growthExponent(tiers)
}
