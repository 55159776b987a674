import type { MessageReceipts } from '../../loadgen/events.js'
import { clientsTarget } from '../../results/clients-record.js'
import type { LatencyMs, ResultRow } from '../../results/result.js'
import { median } from '../../trials/medians.js'
import { NOT_MEASURED } from '../../trials/row-scenario.js'
import { latencyMs } from '../../trials/trial.js'
import { per } from '../../trials/trial-scenario.js'
import { judge } from '../../trials/verdict.js'
import type { FanOutObservation } from './fan-out.js'
import { growthExponent } from './growth.js'
import type { AuctionConfig } from './options.js'
import type { AuctionCase, AuctionMark } from './processes.js'
import type { Reconciliation } from './reconciliation.js'

export function auctionTarget({ transport, broker }: Pick<AuctionConfig, 'transport' | 'broker'>): string {
  return clientsTarget(transport, broker.kind)
}

/** What distinguishes a run from the seed's, in words. */
export function auctionMode(config: AuctionConfig): string {
  const { items, zipf, isSharded, hasCompression, hasTls, isBalanced } = config
  const parts = [
    items === 1 ? 'one item' : `${items} items`,
    ...(zipf > 0 ? [`zipf ${zipf}`] : []),
    ...(isSharded ? ['sharded'] : []),
    ...(hasCompression ? ['compressed'] : []),
    ...(hasTls ? ['tls'] : []),
    ...(isBalanced ? ['balanced'] : []),
  ]
  return parts.join(', ')
}

export function auctionIdentity(config: AuctionConfig, { connections, nodes, cpus }: AuctionCase) {
  return {
    target: auctionTarget(config),
    mode: auctionMode(config),
    subscribers: connections,
    nodes,
    nodeCpus: cpus ?? null,
  }
}

/** The figures of a run with the load generator. */
export function fanOutRow(config: AuctionConfig, testCase: AuctionCase, observation: FanOutObservation): ResultRow {
  const { connected, counted, expectedCount, answers, reconciliation, marks, closed } = observation
  const deliveredCount = counted.frames - counted.duplicateCount
  const receipts = counted.bySeq ?? []
  const seconds = (marks.end.atUs - marks.start.atUs) / 1_000_000
  const generatorCpuSeconds = marks.end.generatorCpuSeconds - marks.start.generatorCpuSeconds
  const bidderCpuSeconds = marks.end.bidderCpuSeconds - marks.start.bidderCpuSeconds
  const bidCount = config.bids * config.items
  const generatorUtilization = counted.busiestThreadShare
  const lostCount = expectedCount - deliveredCount
  return {
    ...NOT_MEASURED,
    ...auctionIdentity(config, testCase),
    publishedPerSecond: per(bidCount, seconds),
    deliveriesPerSecond: per(deliveredCount, seconds),
    bytesPerSecond: per(counted.payloadBytes, seconds),
    latencyMs: latencyMs(counted.latencyUs),
    ...bidFigures(receipts),
    largestItemMs: config.items === 1 ? null : bidFigures(receipts.filter(({ group }) => group === 0)).bidMs.p99,
    deliveryRate: deliveredCount / expectedCount,
    gapCount: lostCount,
    duplicateCount: counted.duplicateCount,
    reorderedCount: counted.reorderedCount,
    missingCount: reconciliation.missingCount,
    reconciliation,
    connectMs: latencyMs(connected.latencyUs),
    connectsPerSecond: per(connected.ok, connected.durationUs / 1_000_000),
    answerMs: answers,
    ...costs(marks.start, marks.end, { deliveredCount, bidCount, generatorCpuSeconds, bidderCpuSeconds }),
    bidderCpuSeconds,
    generatorUtilization,
    earlyReceiptCount: counted.earlyReceipts ?? 0,
    crowd: observation.crowd,
    bids: receipts,
    ...judge({
      lostCount,
      duplicateCount: counted.duplicateCount,
      reorderedCount: counted.reorderedCount,
      failure: failureOf(reconciliation, closed),
      generatorUtilization,
    }),
    repeatCount: 1,
    spread: {},
  }
}

/** Faults other than lost messages; `null` when there were none. */
function failureOf(
  { missingCount, unknownCount, holeCount }: Reconciliation,
  closed: Readonly<Record<string, number>>,
): string | null {
  const codes = Object.entries(closed).map(([code, count]) => `${count} connections closed with ${code}`)
  const found = [
    ...(missingCount > 0 ? [`${missingCount.toLocaleString('en')} missing against Redis`] : []),
    ...(unknownCount > 0 ? [`${unknownCount.toLocaleString('en')} that Redis does not know`] : []),
    ...(holeCount > 0 ? [`${holeCount.toLocaleString('en')} out of sequence in Redis`] : []),
    ...codes,
  ]
  return found.length === 0 ? null : found.join(', ')
}

/** Of each bid's own percentiles: the medians over all bids, and the worst p99. */
function bidFigures(receipts: readonly MessageReceipts[]) {
  const middle = (percentile: 'p50' | 'p95' | 'p99') => toMs(median(receipts.map((bid) => bid[percentile])))
  const bidMs: LatencyMs = { p50: middle('p50'), p95: middle('p95'), p99: middle('p99'), max: null }
  return { bidMs, worstBidMs: receipts.length === 0 ? null : Math.max(...receipts.map(({ p99 }) => p99)) / 1_000 }
}

function toMs(us: number | null): number | null {
  return us === null ? null : us / 1_000
}

/** CPU times by process, and per delivery and bid. */
function costs(
  start: AuctionMark,
  end: AuctionMark,
  load: {
    readonly deliveredCount: number
    readonly bidCount: number
    readonly generatorCpuSeconds: number
    readonly bidderCpuSeconds: number
  },
) {
  const { deliveredCount, bidCount, generatorCpuSeconds, bidderCpuSeconds } = load
  const nodeCpuSeconds = end.nodes.map(({ cpuSeconds }, index) => cpuSeconds - (start.nodes[index]?.cpuSeconds ?? 0))
  const serverCpuSeconds = sum(nodeCpuSeconds)
  const own = {
    brokerCpuSeconds: difference(end.brokerCpuSeconds, start.brokerCpuSeconds),
    redisCpuSeconds: difference(end.redisCpuSeconds, start.redisCpuSeconds),
    gatewayCpuSeconds: difference(end.gatewayCpuSeconds, start.gatewayCpuSeconds),
    balancerCpuSeconds: difference(end.balancerCpuSeconds, start.balancerCpuSeconds),
  }
  const backEndSeconds = serverCpuSeconds + sum(Object.values(own).map((seconds) => seconds ?? 0))
  const allSeconds = backEndSeconds + generatorCpuSeconds + bidderCpuSeconds
  return {
    serverCpuSeconds,
    nodeCpuSeconds,
    busiestNodeShare: per(Math.max(...nodeCpuSeconds), serverCpuSeconds),
    ...own,
    deliveriesPerServerCpuSecond: per(deliveredCount, serverCpuSeconds),
    // Without the generator and the bidder, which are no part of the system.
    deliveriesPerTotalCpuSecond: per(deliveredCount, backEndSeconds),
    serverRssBytes: sum(end.nodes.map(({ rssBytes }) => rssBytes)),
    serverEventLoopLagMs: worstLag(end),
    generatorCpuSeconds,
    generatorShare: per(generatorCpuSeconds, allSeconds),
    cpuPerBidMs: (allSeconds / bidCount) * 1_000,
  }
}

/** Adds to each row the growth exponent of p99 over all bids of all tiers and repeats with the same nodes. */
export function withGrowth(rows: readonly ResultRow[], runs: readonly ResultRow[]): ResultRow[] {
  return rows.map((row) => {
    const alike = runs.filter(({ mode, nodes, nodeCpus }) => {
      return mode === row.mode && nodes === row.nodes && nodeCpus === row.nodeCpus
    })
    const points = alike.flatMap(({ subscribers, bids }) =>
      ((bids ?? []) as readonly MessageReceipts[]).map(({ p99 }) => ({
        connections: subscribers,
        latencyMs: p99 / 1_000,
      })),
    )
    return { ...row, growthExponent: growthExponent(points) }
  })
}

/** Lag of the node with the slowest event loop. */
function worstLag({ nodes }: AuctionMark): LatencyMs | null {
  return nodes.map(({ eventLoopLagMs }) => eventLoopLagMs).toSorted((a, b) => (b.p99 ?? 0) - (a.p99 ?? 0))[0] ?? null
}

function difference(end: number | null, start: number | null): number | null {
  return end === null || start === null ? null : end - start
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
