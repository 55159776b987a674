import type { Counts } from '../../hostile/tally.js'
import type { LatencySummary } from '../../measure/latency-histogram.js'
import { latencyMs, usageBetween } from '../../trials/trial.js'
import { type Measured, per } from '../../trials/trial-scenario.js'
import { judge } from '../../trials/verdict.js'
import type { HonestWindow, HostileObservation } from './measure.js'
import { memoryBoundBytes } from './memory-bound.js'
import type { HostileConfig } from './options.js'

/** An attack may at most double a p99 and add this to it. */
const ALLOWED_FACTOR = 2
const ALLOWED_MS = 5
/** Different answers that the table names. */
const MAX_NAMED = 4

/** The row of one case. */
export function hostileFigures(observation: HostileObservation, config: HostileConfig): Measured {
  const { hostileCase, baseline, attack, attacked, memory, closes, death } = observation
  const { probed, counted } = attack
  const baselineLatencyMs = latencyMs(baseline.counted.latencyUs)
  const attackLatencyMs = latencyMs(counted.latencyUs)
  const lostCount = counted.gapCount + counted.missingCount
  const honestClosedCount = sumOf(closes)
  const healthFailedCount = sumOf(probed.healthFailures)
  const refusedCount = sumOf(probed.refusals)
  const { rssBytes: before, peakRssBytes: peakBefore } = attack.start.server
  const peakAfter = attack.end?.server.peakRssBytes ?? 0
  const serverPeakRssBytes = peakAfter > peakBefore ? peakAfter : memory.peakBytesSince(attack.memoryFromMs)
  const memoryBound = memoryBoundBytes(hostileCase, config.hostile)
  const rssGrowthBytes = Math.max(0, serverPeakRssBytes - before)
  const figures = {
    ...(attack.end === undefined ? {} : usageBetween(attack.start, attack.end)),
    serverPeakRssBytes,
    rssGrowthBytes,
    memoryBoundBytes: memoryBound,
    memoryShare: rssGrowthBytes / memoryBound,
    latencyMs: attackLatencyMs,
    baselineMs: baselineLatencyMs,
    latencyRatio: ratio(attackLatencyMs?.p99, baselineLatencyMs?.p99),
    latencyShare: shareOfAllowed(attackLatencyMs?.p99, baselineLatencyMs?.p99),
    pingMs: probed.pingMs,
    pingBaselineMs: baseline.probed.pingMs,
    pingRatio: ratio(probed.pingMs.p99, baseline.probed.pingMs.p99),
    pingShare: shareOfAllowed(probed.pingMs.p99, baseline.probed.pingMs.p99),
    baselineLagMs: lagOf(baseline),
    gapCount: lostCount,
    lostCount,
    duplicateCount: counted.duplicateCount,
    unansweredPingCount: probed.unansweredPingCount,
    honestClosedCount,
    honestCloses: closes,
    refusedCount,
    refusals: probed.refusals,
    healthMs: probed.healthMs,
    healthFailedCount,
    healthFailures: probed.healthFailures,
    diedCount: death === undefined ? 0 : 1,
    hostile: attacked,
    hostileOperationsPerSecond: per(attacked.operationCount, config.duration),
    hostileSentBytesPerSecond: per(attacked.sentBytes, config.duration),
    hostileReceivedBytesPerSecond: per(attacked.receivedBytes, config.duration),
    hostileConnectCount: attacked.connectCount,
    hostileCpuSeconds: attacked.cpuSeconds,
    hostileGot: gotText(attacked),
    proberLagMs: probed.lagMs,
    generatorUtilization: counted.busiestThreadShare,
  }
  const losses = [
    death,
    counts(honestClosedCount, 'honest connections were closed', closes),
    counts(refusedCount, 'honest messages were refused', probed.refusals),
    counts(probed.unansweredPingCount, 'pings were not answered'),
  ].filter((reason) => reason !== undefined)
  const late = [
    overText('p99 of deliveries', figures.latencyShare, attackLatencyMs, baselineLatencyMs),
    overText('p99 of pings', figures.pingShare, probed.pingMs, baseline.probed.pingMs),
    counts(healthFailedCount, 'requests for /health failed', probed.healthFailures),
    figures.memoryShare > 1 ? `memory grew by ${figures.memoryShare.toFixed(1)} times what is allowed` : undefined,
  ].filter((reason) => reason !== undefined)
  const judgement = judge({
    lostCount,
    duplicateCount: counted.duplicateCount,
    failure: losses.length === 0 ? null : losses.join('; '),
    generatorUtilization: counted.busiestThreadShare,
    serverLate: late.length === 0 ? null : late.join('; '),
  })
  const bugs = Object.entries(attacked.bugs).map(
    ([text, count]) => `${hostileCase.name}: ${count} clients failed: ${text}`,
  )
  return {
    figures: { ...figures, ...judgement },
    series: [{ title: 'server memory', unit: 'B', format: 'bytes', points: memory.points }],
    notes: bugs,
  }
}

/** The part of the allowed p99 that an attack takes: above 1 is too slow. */
export function shareOfAllowed(p99: number | null | undefined, baselineP99: number | null | undefined): number | null {
  if (p99 === null || p99 === undefined || baselineP99 === null || baselineP99 === undefined) return null
  return p99 / (ALLOWED_FACTOR * baselineP99 + ALLOWED_MS)
}

function ratio(value: number | null | undefined, base: number | null | undefined): number | null {
  return value === null || value === undefined || !base ? null : value / base
}

function lagOf({ start, end }: HonestWindow) {
  return end === undefined ? null : usageBetween(start, end).serverEventLoopLagMs
}

function overText(
  what: string,
  share: number | null,
  attack: Pick<LatencySummary, 'p99'> | null,
  baseline: Pick<LatencySummary, 'p99'> | null,
): string | undefined {
  if (share === null) return `${what}: nothing arrived`
  return share > 1 ? `${what} ${attack?.p99?.toFixed(1)} ms, ${baseline?.p99?.toFixed(1)} ms without` : undefined
}

function counts(count: number, what: string, byReason?: Counts): string | undefined {
  if (count === 0) return undefined
  return `${count.toLocaleString('en')} ${what}${byReason === undefined ? '' : ` (${countsText(byReason)})`}`
}

/** Close codes, errors and statuses, the most frequent first. */
function gotText({ statuses, closes, errors }: { statuses: Counts; closes: Counts; errors: Counts }): string {
  const { 101: _, ...refusals } = statuses
  return countsText({ ...refusals, ...closes, ...errors }) || 'nothing'
}

function countsText(byName: Counts): string {
  const sorted = Object.entries(byName).toSorted(([, a], [, b]) => b - a)
  const named = sorted.slice(0, MAX_NAMED).map(([name, count]) => `${name} ×${count.toLocaleString('en')}`)
  return [...named, ...(sorted.length > MAX_NAMED ? ['…'] : [])].join(', ')
}

function sumOf(byName: Counts): number {
  return Object.values(byName).reduce((sum, count) => sum + count, 0)
}
