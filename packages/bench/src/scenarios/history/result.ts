import type { BackendSample } from '../../backends.js'
import type { LoadgenStats, MicrosecondSummary } from '../../loadgen/events.js'
import type { VirtualUsersReport } from '../../loadgen/plans.js'
import { clientsTarget } from '../../results/clients-record.js'
import { column, faults, VERDICT_COLUMN } from '../../results/columns.js'
import type { LatencyMs, ResultColumn, ResultRow } from '../../results/result.js'
import { judge } from '../../trials/verdict.js'
import { carrierOf, type HistoryCase, type HistoryConfig } from './options.js'

/** Resources that all processes have used up to one moment. */
export interface HistoryMark {
  /** Of the machine's clock. */
  readonly atUs: number
  readonly backends: readonly BackendSample[]
  /** `null`: it has no processes of its own. */
  readonly brokerCpuSeconds: number | null
  readonly balancerCpuSeconds: number | null
  readonly users: Pick<LoadgenStats, 'cpuUserUs' | 'cpuSystemUs'>
}

export interface HistoryObservation {
  readonly report: VirtualUsersReport
  /** Before the first user, while all users are there, and after the last. */
  readonly marks: Readonly<Record<'start' | 'fullFrom' | 'fullTo' | 'end', HistoryMark>>
  readonly brokerPeakRssBytes: number | null
}

/** A distribution in AnyCable's format, in milliseconds. */
export interface TrendMs {
  readonly avg: number
  readonly min: number
  readonly med: number
  readonly max: number
  readonly p90: number
  readonly p95: number
  readonly p99: number
}

/** AnyCable's distributions by their members in a row. */
export const TRENDS = {
  broadcastMs: 'broadcast_duration',
  historyMs: 'history_duration',
  rttMs: 'rtt',
  subackMs: 'suback',
  connectingMs: 'ws_connecting',
  iterationMs: 'iteration_duration',
} as const

/** Server resources are also given per this many seconds with all users, to compare loads. */
export const CPU_WINDOW_S = 50

export interface HistoryRow extends ResultRow, Readonly<Record<keyof typeof TRENDS, TrendMs | null>> {
  readonly report: VirtualUsersReport
}

const trend = (key: keyof typeof TRENDS, title: string, ...parts: readonly (keyof TrendMs)[]) =>
  parts.map((part) => column(`${key}.${part}`, `${title} ${part}`, 'ms', 'lower'))
const check = (key: string, title: string): ResultColumn => ({
  ...column(key, title, 'percent', 'higher'),
  repeats: 'min',
})

export const HISTORY_COLUMNS: readonly ResultColumn[] = [
  column('target', 'Target', 'text'),
  column('backends', 'Backends', 'count'),
  column('subscribers', 'Users', 'count'),
  column('rounds', 'N', 'count'),
  ...trend('broadcastMs', 'broadcast', 'avg', 'med', 'p95', 'p99', 'max'),
  ...trend('historyMs', 'history', 'avg', 'med', 'p95', 'p99', 'max'),
  ...trend('rttMs', 'rtt', 'avg', 'med', 'p95', 'max'),
  ...trend('subackMs', 'suback', 'avg', 'p95', 'max'),
  ...trend('connectingMs', 'connecting', 'avg', 'p95', 'max'),
  column('iterations', 'Iterations', 'count'),
  column('acksReceived', 'Acks', 'count'),
  column('broadcastsReceived', 'Broadcasts', 'count'),
  column('historyReceived', 'From history', 'count'),
  check('connectionRatio', 'connected'),
  check('subscriptionRatio', 'subscribed'),
  check('historyRatio', 'history received'),
  faults('gapCount', 'Missed'),
  faults('duplicateCount', 'Duplicates'),
  faults('inversionCount', 'Inversions'),
  column('joinCount', 'Joins', 'count'),
  faults('joinMissCount', 'missed'),
  faults('joinDuplicateCount', 'duplicates'),
  faults('joinInversionCount', 'inversions'),
  column('serverCpuSeconds', 'Server CPU', 'seconds', 'lower'),
  column('serverCpuSecondsPerWindow', `per ${CPU_WINDOW_S} s with all users`, 'seconds', 'lower'),
  column('serverPeakRssBytes', 'Server peak RSS', 'bytes', 'lower'),
  column('serverEventLoopLagMs.p99', 'Event-loop lag p99', 'ms', 'lower'),
  column('brokerCpuSeconds', 'Broker CPU', 'seconds', 'lower'),
  column('brokerPeakRssBytes', 'Broker peak RSS', 'bytes', 'lower'),
  column('balancerCpuSeconds', 'Balancer CPU', 'seconds', 'lower'),
  column('generatorCpuSeconds', 'Generator CPU', 'seconds'),
  column('generatorUtilization', 'Generator busy', 'percent'),
  column('generatorLateMs.p95', 'Generator late p95', 'ms'),
  VERDICT_COLUMN,
]

export const HISTORY_IDENTITY: readonly string[] = ['target', 'backends', 'subscribers', 'rounds']

export function historyTarget(testCase: HistoryCase, { transport }: Pick<HistoryConfig, 'transport'>): string {
  return testCase.broker === 'none'
    ? `${clientsTarget(transport, carrierOf(testCase))}-no-history`
    : clientsTarget(transport, testCase.broker)
}

export function historyRow(
  testCase: HistoryCase,
  config: HistoryConfig,
  { report, marks, brokerPeakRssBytes }: HistoryObservation,
): HistoryRow {
  const { live, joined, histories } = report.verified
  const seconds = report.durationUs / 1_000_000
  const { start, fullFrom, fullTo, end } = marks
  const fullSeconds = (fullTo.atUs - fullFrom.atUs) / 1_000_000
  const serverCpuSeconds = serverSeconds(end) - serverSeconds(start)
  const generatorUtilization = (usersSeconds(fullTo) - usersSeconds(fullFrom)) / fullSeconds
  const unackedCount = report.broadcastsSent - report.acksReceived
  return {
    target: historyTarget(testCase, config),
    mode: 'history',
    subscribers: config.users,
    backends: testCase.backends,
    rounds: config.rounds,
    publishedPerSecond: report.broadcastsSent / seconds,
    deliveriesPerSecond: report.broadcastsReceived / seconds,
    bytesPerSecond: report.bytesReceived / seconds,
    iterations: report.iterations,
    acksReceived: report.acksReceived,
    broadcastsSent: report.broadcastsSent,
    broadcastsReceived: report.broadcastsReceived,
    historyReceived: report.historyReceived,
    broadcastMs: trendOf(report.broadcastUs),
    historyMs: trendOf(report.historyUs),
    rttMs: trendOf(report.rttUs),
    subackMs: trendOf(report.subackUs),
    connectingMs: trendOf(report.connectingUs),
    iterationMs: trendOf(report.iterationUs),
    generatorLateMs: trendOf(report.lateUs),
    latencyMs: latencyOf(report.broadcastUs),
    connectionRatio: ratioOf(report.checks.connection),
    subscriptionRatio: ratioOf(report.checks.subscription),
    historyRatio: ratioOf(report.checks.history),
    gapCount: live.misses,
    duplicateCount: live.duplicates,
    inversionCount: live.inversions,
    joinCount: histories,
    joinMissCount: joined.misses,
    joinDuplicateCount: joined.duplicates,
    joinInversionCount: joined.inversions,
    unackedCount,
    serverCpuSeconds,
    serverCpuSecondsPerWindow: ((serverSeconds(fullTo) - serverSeconds(fullFrom)) / fullSeconds) * CPU_WINDOW_S,
    deliveriesPerServerCpuSecond: serverCpuSeconds === 0 ? null : report.broadcastsReceived / serverCpuSeconds,
    serverRssBytes: sum(end.backends.map(({ rssBytes }) => rssBytes)),
    serverPeakRssBytes: sum(end.backends.map(({ peakRssBytes }) => peakRssBytes)),
    serverEventLoopLagMs: worstLag(fullTo),
    brokerCpuSeconds: difference(end.brokerCpuSeconds, start.brokerCpuSeconds),
    brokerPeakRssBytes,
    balancerCpuSeconds: difference(end.balancerCpuSeconds, start.balancerCpuSeconds),
    generatorCpuSeconds: (report.cpuUserUs + report.cpuSystemUs) / 1_000_000,
    generatorUtilization,
    ...judge({
      lostCount: live.misses + joined.misses,
      duplicateCount: live.duplicates + joined.duplicates,
      reorderedCount: live.inversions + joined.inversions,
      failure: failureOf(testCase, report, unackedCount),
      generatorUtilization,
    }),
    repeatCount: 1,
    spread: {},
    report,
  }
}

/** Failures other than lost messages; `null` when there were none. */
function failureOf({ broker }: HistoryCase, report: VirtualUsersReport, unackedCount: number): string | null {
  const { connection, subscription, history } = report.checks
  const reasons = [
    [connection.fails, 'failed connections'],
    [subscription.fails, 'failed listens'],
    [broker === 'none' ? 0 : history.fails, 'failed requests for the history'],
    [broker === 'none' ? 0 : report.historyGaps, 'answers with a gap'],
    [report.epochChanges, 'messages of another epoch'],
    [report.interrupted, `interrupted iterations: ${counts(report.failures)}`],
    [unackedCount, `messages without an answer: ${counts(report.errors)}`],
  ] as const
  const found = reasons.filter(([count]) => count > 0).map(([count, what]) => `${count.toLocaleString('en')} ${what}`)
  return found.length === 0 ? null : found.join(', ')
}

function counts(byReason: Readonly<Record<string, number>>): string {
  const entries = Object.entries(byReason).toSorted(([, a], [, b]) => b - a)
  return entries.length === 0 ? 'nothing was said' : entries.map(([reason, count]) => `${reason} (${count})`).join(', ')
}

function ratioOf({ passes, fails }: { readonly passes: number; readonly fails: number }): number | null {
  return passes + fails === 0 ? null : passes / (passes + fails)
}

function trendOf(summary: MicrosecondSummary | null): TrendMs | null {
  if (summary === null) return null
  const { mean, min, p50, p90, p95, p99, max } = summary
  const ms = (us: number) => us / 1_000
  return { avg: ms(mean), min: ms(min), med: ms(p50), max: ms(max), p90: ms(p90), p95: ms(p95), p99: ms(p99) }
}

function latencyOf(summary: MicrosecondSummary | null): LatencyMs | null {
  if (summary === null) return null
  const { p50, p95, p99, max } = summary
  return { p50: p50 / 1_000, p95: p95 / 1_000, p99: p99 / 1_000, max: max / 1_000 }
}

/** Lag of the backend with the slowest event loop. */
function worstLag({ backends }: HistoryMark): LatencyMs | null {
  return backends.map(({ eventLoopLagMs }) => eventLoopLagMs).toSorted((a, b) => (b.p99 ?? 0) - (a.p99 ?? 0))[0] ?? null
}

function serverSeconds({ backends }: HistoryMark): number {
  return sum(backends.map(({ cpuSeconds }) => cpuSeconds))
}

function usersSeconds({ users }: HistoryMark): number {
  return (users.cpuUserUs + users.cpuSystemUs) / 1_000_000
}

function difference(end: number | null, start: number | null): number | null {
  return end === null || start === null ? null : end - start
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
