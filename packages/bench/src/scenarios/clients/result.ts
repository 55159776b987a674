import type { BackendSample } from '../../backends.js'
import { isEmbedded } from '../../brokers/broker-choice.js'
import type { BackendLoad, LoadResult } from '../../generator/messages.js'
import { barsOf, type LatencySummary, mergeHistograms, summarizeLatency } from '../../measure/latency-histogram.js'
import { growthPerSecond, type Moment, stepMsOf } from '../../measure/over-time.js'
import { formatCount, formatMs } from '../../report/format.js'
import type { BackendResult, ClientsConfig, ClientsOverTime, ClientsReport } from '../../results/clients-report.js'
import type { Judgement } from '../../results/judgement.js'
import { coresText, coresUsed, isMachineFull, type WindowCpu } from './cores.js'

/** Messages, and CPU seconds of each part, up to one moment of the window. */
export type WindowMoment = Moment<'published' | 'delivered' | 'servers' | 'generator' | 'broker' | 'machine'>

export interface ClientsObservation {
  readonly loads: readonly LoadResult[]
  /** The end of the window on the machine's clock. */
  readonly windowEndUs: number
  readonly hasDrainTimedOut: boolean
  readonly ports: readonly number[]
  /** Per backend at the start of the window, at its end, and after the drain. */
  readonly samples: Readonly<Record<'start' | 'end' | 'drained', readonly BackendSample[]>>
  /** CPU time of the broker's own processes, from the start of the window to the end of the drain; `null`: not ours. */
  readonly brokerCpuSeconds: number | null
  /** CPU time of the process that plays the clients, from the start of the window to the end of the drain. */
  readonly generatorCpuSeconds: number
  readonly windowCpu: WindowCpu
  /** Of the window: the duration, or less of a run that the user ended. */
  readonly windowSeconds: number
  readonly isInterrupted: boolean
  /** At the start of the window and after each step of it. */
  readonly moments: readonly WindowMoment[]
}

/** Above this share of busy time a worker has no slack to send and stamp on time. */
const SATURATED_UTILIZATION = 0.9
/** A worker whose timers or messages are this late stamps arrivals that late too. */
const SATURATED_LAG_MS = 20
/** Lateness of sending above this share of the latency dominates it… */
const DOMINANT_SEND_LAG_RATIO = 0.5
/** …unless it is below this. */
const NEGLIGIBLE_SEND_LAG_MS = 2
/** The least share of the deliveries that come within the window when the load is carried… */
const KEPT_RATIO = 0.99
/** …unless those that were under way at its end come within this. */
const NEGLIGIBLE_DRAIN_MS = 100
/** The longest drain of a load that is carried. */
const MAX_DRAIN_MS = 1_000

/** Adds up the counts of workers and backends. */
export function summarizeClients(config: ClientsConfig, observation: ClientsObservation): ClientsReport {
  const { loads, samples, windowSeconds, isInterrupted } = observation
  const perBackend = loads.flatMap((load) => load.perBackend)
  const expectedCount = sum(loads, (load) => load.expectedCount)
  const publishedCount = sum(perBackend, (tally) => tally.publishedCount)
  const deliveredCount = sum(perBackend, (tally) => tally.deliveredCount)
  const backends = samples.end.map((_, backend) => summarizeBackend(observation, perBackend, backend))
  const serversInWindow = sum(
    samples.end.map((_, backend) => usedSeconds(samples, backend)),
    Number,
  )
  const cpuSeconds = sum(backends, (backend) => backend.serverCpuSeconds)
  const totalCpuSeconds = isEmbedded(config.broker) ? cpuSeconds : plus(cpuSeconds, observation.brokerCpuSeconds)
  const publishErrorCount = sum(loads, (load) => load.publishErrorCount)
  const generator = summarizeGenerator(observation)
  const latency = mergeHistograms(perBackend.map((tally) => tally.latency))
  const latencyMs = summarizeLatency(latency)
  const latencyBars = barsOf(latency)
  const report = {
    results: {
      publishedCount,
      expectedCount,
      deliveredCount,
      lossRatio: expectedCount === 0 ? 0 : (expectedCount - deliveredCount) / expectedCount,
      duplicateCount: sum(perBackend, (tally) => tally.duplicateCount),
      reorderedCount: sum(perBackend, (tally) => tally.reorderedCount),
      fanOutRatio: publishedCount === 0 ? 0 : expectedCount / publishedCount,
      drainMs: drainMs(observation),
      latencyMs,
      perBackend: backends,
    },
    rates: {
      publishedPerSecond: sum(loads, (load) => load.publishedInWindowCount) / windowSeconds,
      expectedPerSecond: expectedCount / windowSeconds,
      deliveredPerSecond: sum(perBackend, (tally) => tally.deliveredInWindowCount) / windowSeconds,
    },
    irregularities: {
      unexpectedCount: sum(perBackend, (tally) => tally.unexpectedCount),
      publishErrorCount,
      refusedCount: refusedCount(samples.drained) - refusedCount(samples.start),
      unacknowledgedCount: publishedCount - sum(loads, (load) => load.acknowledgedCount) - publishErrorCount,
      firstPublishError: loads.find((load) => load.firstPublishError !== undefined)?.firstPublishError ?? null,
      reconnectCount: sum(loads, (load) => load.reconnectCount),
      gapCount: sum(loads, (load) => load.gapCount),
      clientErrorCount: sum(loads, (load) => load.clientErrorCount),
      closedCount: sum(loads, (load) => load.closedCount),
      firstClose: loads.find((load) => load.firstClose !== undefined)?.firstClose ?? null,
      hasDrainTimedOut: observation.hasDrainTimedOut,
    },
    server: {
      cpuSeconds,
      deliveriesPerCpuSecond: perSecond(deliveredCount, cpuSeconds),
      rssBytes: sum(backends, (backend) => backend.serverRssBytes),
    },
    broker: { cpuSeconds: observation.brokerCpuSeconds },
    total: { cpuSeconds: totalCpuSeconds, deliveriesPerCpuSecond: perSecond(deliveredCount, totalCpuSeconds) },
    cores: coresUsed(observation.windowCpu, serversInWindow, windowSeconds),
    overTime: overTime(config, observation),
    ...(latencyBars === null ? {} : { latencyBars }),
    ...(isInterrupted ? { interrupted: true as const } : {}),
    generator,
  }
  return { ...judgeRun(config, observation, report), ...report }
}

/** Blames whoever is full: all cores, the generator its own, a server its event loop or its core, and else the broker. */
function judgeRun(
  config: ClientsConfig,
  { samples, windowSeconds }: ClientsObservation,
  { results, rates, irregularities, generator, cores }: Omit<ClientsReport, 'verdict' | 'verdictReason'>,
): Judgement {
  const { publishErrorCount, firstPublishError } = irregularities
  if (publishErrorCount > 0) {
    const share = `${formatCount(publishErrorCount)} of ${formatCount(results.publishedCount)}`
    const full = isMachineFull(cores) ? `; ${coresText(cores)}` : ''
    return { verdict: 'publishes failed', verdictReason: `${share}, the first: ${firstPublishError}${full}` }
  }
  if (isMachineFull(cores)) return { verdict: 'machine saturated', verdictReason: coresText(cores) }
  const saturated = saturationReason(generator, results.latencyMs)
  const isBehind = rates.deliveredPerSecond < KEPT_RATIO * rates.expectedPerSecond
  const isLate = results.drainMs > (isBehind ? NEGLIGIBLE_DRAIN_MS : MAX_DRAIN_MS)
  if (!isLate || generator.utilization > SATURATED_UTILIZATION) {
    if (saturated === null) return { verdict: 'ok', verdictReason: null }
    return { verdict: 'generator saturated', verdictReason: `${saturated}; ${coresText(cores)}` }
  }
  const isFull = samples.end.some(({ eventLoopLagMs }, backend) => {
    const isBusy = usedSeconds(samples, backend) > SATURATED_UTILIZATION * windowSeconds
    return isBusy || (eventLoopLagMs.p99 ?? 0) > SATURATED_LAG_MS
  })
  const rate = `${formatCount(rates.deliveredPerSecond)} of ${formatCount(rates.expectedPerSecond)} deliveries/s`
  return {
    verdict: isFull || isEmbedded(config.broker) ? 'server saturated' : 'broker saturated',
    verdictReason: `${rate} came within the window, the last ${formatMs(results.drainMs)} after it`,
  }
}

function overTime({ duration }: ClientsConfig, { moments }: ClientsObservation): ClientsOverTime {
  return {
    stepMs: stepMsOf(duration * 1_000),
    publishedPerSecond: growthPerSecond(moments, 'published'),
    deliveredPerSecond: growthPerSecond(moments, 'delivered'),
    cores: {
      machine: growthPerSecond(moments, 'machine'),
      servers: growthPerSecond(moments, 'servers'),
      generator: growthPerSecond(moments, 'generator'),
      broker: growthPerSecond(moments, 'broker'),
    },
  }
}

/** Processor time of a server within the window. */
function usedSeconds({ start, end }: ClientsObservation['samples'], backend: number): number {
  return (end[backend]?.cpuSeconds ?? 0) - (start[backend]?.cpuSeconds ?? 0)
}

function refusedCount(samples: readonly BackendSample[]): number {
  return sum(samples, (sample) => sample.refusedCount)
}

function summarizeBackend(
  { samples, ports, windowSeconds }: ClientsObservation,
  loads: readonly BackendLoad[],
  backend: number,
): BackendResult {
  const own = loads.filter((load) => load.backend === backend)
  return {
    backend,
    port: ports[backend] ?? 0,
    clientCount: sum(own, (load) => load.clientCount),
    publishedCount: sum(own, (load) => load.publishedCount),
    deliveredCount: sum(own, (load) => load.deliveredCount),
    deliveredPerSecond: sum(own, (load) => load.deliveredInWindowCount) / windowSeconds,
    latencyMs: summarizeLatency(mergeHistograms(own.map((load) => load.latency))),
    serverCpuSeconds: (samples.drained[backend]?.cpuSeconds ?? 0) - (samples.start[backend]?.cpuSeconds ?? 0),
    serverRssBytes: samples.end[backend]?.rssBytes ?? 0,
    serverPeakRssBytes: samples.drained[backend]?.peakRssBytes ?? 0,
    serverEventLoopLagMs: samples.end[backend]?.eventLoopLagMs ?? { p50: null, p95: null, p99: null, max: null },
  }
}

function summarizeGenerator({ loads, generatorCpuSeconds }: ClientsObservation): ClientsReport['generator'] {
  return {
    cpuSeconds: generatorCpuSeconds,
    utilization: largest(loads.map((load) => load.utilization)) ?? 0,
    eventLoopLagMs: summarizeLatency(mergeHistograms(loads.map((load) => load.eventLoopLag))),
    sendLagMs: summarizeLatency(mergeHistograms(loads.map((load) => load.sendLag))),
  }
}

/** Why the figures are the generator's rather than the server's; `null` when they are not. */
function saturationReason(generator: ClientsReport['generator'], latencyMs: LatencySummary): string | null {
  const { utilization, eventLoopLagMs, sendLagMs } = generator
  const sentLateMs = sendLagMs.p99 ?? 0
  if (utilization > SATURATED_UTILIZATION) return 'a worker was busy nearly all the time'
  if ((eventLoopLagMs.p99 ?? 0) > SATURATED_LAG_MS) return "a worker's event loop was late"
  if (sentLateMs > SATURATED_LAG_MS) return 'messages were sent late'
  if (sentLateMs > NEGLIGIBLE_SEND_LAG_MS && sentLateMs > DOMINANT_SEND_LAG_RATIO * (latencyMs.p99 ?? 0)) {
    return 'most of the p99 latency is that messages were sent late'
  }
  return null
}

/** From the end of publishing to the last arrival, without the silence that confirms it. */
function drainMs({ loads, windowEndUs }: ClientsObservation): number {
  const publishingEndUs = Math.max(windowEndUs, ...loads.map((load) => load.lastSendUs))
  const lastArrivalUs = Math.max(0, ...loads.map((load) => load.lastArrivalUs))
  return Math.max(0, lastArrivalUs - publishingEndUs) / 1_000
}

function perSecond(count: number, seconds: number | null): number | null {
  return seconds !== null && seconds > 0 ? count / seconds : null
}

function plus(a: number, b: number | null): number | null {
  return b === null ? null : a + b
}

function sum<T>(items: readonly T[], measure: (item: T) => number): number {
  return items.reduce((total, item) => total + measure(item), 0)
}

/** The largest of the values; `null` when there is none. */
export function largest(values: readonly (number | null)[]): number | null {
  return values.reduce(
    (most, value) => (value !== null && value > (most ?? Number.NEGATIVE_INFINITY) ? value : most),
    null,
  )
}
