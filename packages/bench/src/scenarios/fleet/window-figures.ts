import { countMessages } from './count-messages.js'
import { usedBetween } from './cpu-usage.js'
import type { FaultWindow, FleetObservation } from './observation.js'
import { mostWithin, type Recovery, reconnectsOf, recoveryOf } from './recovery.js'

/** What clients saw in one window. */
export interface WindowFigures extends Recovery {
  readonly publishedCount: number
  /** Publishes that were refused and tried again, with the same id. */
  readonly retriedCount: number
  readonly failedPublishCount: number
  readonly expectedCount: number
  readonly deliveredCount: number
  /** Missing without a told gap. */
  readonly lostCount: number
  /** Missing, and the listener was told so. */
  readonly missedInGapCount: number
  readonly duplicateCount: number
  readonly reorderedCount: number
  readonly toldGapCount: number
  /** From the beginning of the fault until it was repaired. */
  readonly faultMs: number | null
  readonly reconnectCount: number
  /** Time that each client was without a working connection. */
  readonly reconnectMs: Percentiles
  /** From the beginning of the fault to the last reconnect. */
  readonly allConnectedMs: number | null
  readonly mostOpenedIn100Ms: number
  readonly mostOpenedIn1S: number
  readonly latencyMs: Percentiles
  readonly nodeCpuSeconds: number | null
  readonly brokerCpuSeconds: number | null
  readonly balancerCpuSeconds: number | null
  readonly clientCpuSeconds: number | null
  /** Some of the messages that were lost, doubled or out of order, in words. */
  readonly examples: readonly string[]
}

/** Milliseconds; `null`: there is no value. */
export interface Percentiles {
  readonly p50: number | null
  readonly p99: number | null
  readonly max: number | null
}

const MAX_EXAMPLES = 20

/** Counts what belongs to a window: messages by the time at which they arose, everything else by its own time. */
export function windowFigures({ log, usage }: FleetObservation, window: FaultWindow): WindowFigures {
  const isWithin = (atUs: number) => atUs >= window.startUs && atUs < window.endUs
  const { expectedCount, lost, missedInGapCount } = countMessages(log, isWithin)
  const irregular = log.irregularities.filter(({ createdUs }) => isWithin(createdUs))
  const reconnects = reconnectsOf(log.connections, window)
  const openedUs = reconnects.map(({ next }) => next.openedUs)
  const latencies = log.deliveries.filter(({ atUs }) => isWithin(atUs)).map(({ latencyUs }) => latencyUs / 1_000)
  const examples = [...lost.map((one) => ({ kind: 'lost', ...one })), ...irregular].slice(0, MAX_EXAMPLES)
  return {
    publishedCount: [...log.publications.values()].flat().filter(({ createdUs }) => isWithin(createdUs)).length,
    retriedCount: log.retriedUs.filter(isWithin).length,
    failedPublishCount: log.failures.filter(({ atUs }) => isWithin(atUs)).length,
    expectedCount,
    deliveredCount: expectedCount - lost.length - missedInGapCount,
    lostCount: lost.length,
    missedInGapCount,
    duplicateCount: irregular.filter(({ kind }) => kind === 'doubled').length,
    reorderedCount: irregular.filter(({ kind }) => kind === 'out of order').length,
    toldGapCount: log.gaps.filter(({ atUs }) => isWithin(atUs)).length,
    faultMs: window.breaks === null ? null : (window.repairedUs - window.startUs) / 1_000,
    ...recoveryOf(log, window, reconnects),
    reconnectCount: reconnects.length,
    reconnectMs: percentiles(reconnects.map(({ lostUs, next }) => (next.openedUs - lostUs) / 1_000)),
    allConnectedMs: openedUs.length === 0 ? null : (Math.max(...openedUs) - window.startUs) / 1_000,
    mostOpenedIn100Ms: mostWithin(openedUs, 100_000),
    mostOpenedIn1S: mostWithin(openedUs, 1_000_000),
    latencyMs: percentiles(latencies),
    nodeCpuSeconds: usedBetween(usage, 'nodes', window),
    brokerCpuSeconds: usedBetween(usage, 'broker', window),
    balancerCpuSeconds: usedBetween(usage, 'balancer', window),
    clientCpuSeconds: usedBetween(usage, 'clients', window),
    examples: examples.map(({ kind, client, key, number, createdUs }) => {
      const atMs = Math.round((createdUs - window.startUs) / 1_000)
      return `${kind}: ${client}, ${key} ${number}, published ${atMs.toLocaleString('en')} ms after the fault`
    }),
  }
}

/** Percentiles by the nearest rank. */
export function percentiles(values: readonly number[]): Percentiles {
  const sorted = Float64Array.from(values).sort()
  const at = (share: number) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? null
  return { p50: at(0.5), p99: at(0.99), max: at(1) }
}
