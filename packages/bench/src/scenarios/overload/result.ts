import type { ServiceBrokerKind } from '../../brokers/broker-choice.js'
import { clientsTarget } from '../../results/clients-record.js'
import { column, faults, percentileColumns, VERDICT_COLUMN } from '../../results/columns.js'
import type { Judgement } from '../../results/judgement.js'
import type { ResultColumn, ResultCurve, ResultRow } from '../../results/result.js'
import { NOT_MEASURED } from '../../trials/row-scenario.js'
import { judge } from '../../trials/verdict.js'
import { normalAfterMs, normalLimitMs, type SpanFigures, spanFigures } from './figures.js'
import type { OverloadConfig } from './options.js'
import type { OverloadObservation, Phase } from './run.js'

export const OVERLOAD_COLUMNS: readonly ResultColumn[] = [
  column('target', 'Target', 'text'),
  column('fault', 'Fault', 'text'),
  column('load', 'Load', 'ratio'),
  column('subscribers', 'Clients', 'count'),
  column('offeredPerSecond', 'Offered/s', 'rate'),
  column('ackedPerSecond', 'Acknowledged/s', 'rate', 'higher'),
  column('capacityPerSecond', 'Capacity/s', 'rate', 'higher'),
  column('goodput', 'Goodput', 'percent', 'higher'),
  faults('refusedCount', 'Refused'),
  faults('mostRefusals', 'Refusals of one'),
  faults('failedCount', 'Failed'),
  ...percentileColumns('latencyMs', '', ['p50', 'p99', 'max']),
  column('normalMs', 'Normal after', 'ms', 'lower'),
  column('idealMs', 'Ideal', 'ms'),
  column('normalRatio', 'Of the ideal', 'ratio', 'lower'),
  column('brokerUtilization', 'Broker busy', 'percent'),
  column('serverCpuSeconds', 'Server CPU', 'seconds', 'lower'),
  column('generatorUtilization', 'Generator busy', 'percent'),
  VERDICT_COLUMN,
]

export const OVERLOAD_IDENTITY: readonly string[] = ['target', 'fault', 'load', 'subscribers']

/** Above this share of a core a node may be the limit, not its broker. */
const BUSY_NODE = 0.9

export function overloadTarget(kind: ServiceBrokerKind, { transport }: Pick<OverloadConfig, 'transport'>): string {
  return clientsTarget(transport, kind)
}

/** The rates of a fault's row are from its end until things are normal: then the broker has no reason to rest. */
export function overloadRow(
  target: string,
  config: OverloadConfig,
  capacity: number,
  { fault, load, log, window, broken, after, idealMs, brokerUtilization, nodeCpuSeconds }: Phase,
): ResultRow {
  const before = spanFigures(log, window, capacity)
  const normalMs = after && normalAfterMs(log.messages, after, normalLimitMs(before.latencyMs.p99))
  let figures = before
  if (broken !== null && after !== null) {
    const endUs = normalMs === null ? after.endUs : after.startUs + Math.max(normalMs * 1_000, 1_000_000)
    // What was refused and failed, and the latency, from the beginning of the fault.
    const whole = spanFigures(log, { startUs: broken.startUs, endUs: after.endUs })
    const { offeredPerSecond, ackedPerSecond, possiblePerSecond } = spanFigures(
      log,
      { startUs: after.startUs, endUs },
      capacity,
    )
    figures = { ...whole, offeredPerSecond, ackedPerSecond, possiblePerSecond }
  }
  const { failures, ...own } = figures
  const seconds = (window.endUs - window.startUs) / 1_000_000
  return {
    ...NOT_MEASURED,
    ...own,
    target,
    mode: 'overload',
    fault,
    load,
    subscribers: config.clients,
    publishedPerSecond: own.ackedPerSecond,
    capacityPerSecond: capacity,
    goodput: own.ackedPerSecond / own.possiblePerSecond,
    normalMs,
    idealMs,
    normalRatio: normalMs === null || idealMs === null ? null : normalMs / idealMs,
    brokerUtilization,
    serverCpuSeconds: nodeCpuSeconds,
    generatorUtilization: log.utilization,
    ...judgeOverload({ ...figures, failures }, log.utilization, {
      isStuck: after !== null && normalMs === null,
      nodeCores: nodeCpuSeconds / seconds / config.backends,
    }),
    repeatCount: 1,
    spread: {},
  }
}

function judgeOverload(
  { failures }: SpanFigures,
  generatorUtilization: number,
  { isStuck, nodeCores }: { readonly isStuck: boolean; readonly nodeCores: number },
): Judgement {
  if (failures.length > 0) return { verdict: 'publishes failed', verdictReason: failures.join(', ') }
  const busy = nodeCores > BUSY_NODE ? `a node used ${Math.round(nodeCores * 100)}% of a core` : null
  const judgement = judge({ generatorUtilization, serverLate: busy })
  if (judgement.verdict !== 'ok' || !isStuck) return judgement
  return { verdict: 'broker saturated', verdictReason: 'not normal again while the run looked' }
}

/** Acknowledged by offered messages, in shares of the capacity, beside a queue that loses nothing. */
export function overloadCurve(target: string, { capacity, phases }: OverloadObservation): ResultCurve {
  const points = phases
    .filter(({ fault }) => fault === 'none')
    .map(({ log, window }) => spanFigures(log, window))
    .map(({ offeredPerSecond, ackedPerSecond }) => ({ x: offeredPerSecond / capacity, y: ackedPerSecond / capacity }))
    .toSorted((one, other) => one.x - other.x)
  const most = Math.max(1, ...points.map(({ x }) => x))
  const corners = [0, 1, most].map((x) => ({ x, y: Math.min(1, x) }))
  return {
    title: `${target}, ${Math.round(capacity).toLocaleString('en')} publishes per second`,
    x: 'Offered, of the capacity',
    y: 'Acknowledged, of the capacity',
    lines: [
      { name: 'ideal', isReference: true, points: corners },
      { name: 'acknowledged', isReference: false, points },
    ],
  }
}
