import type { CheckCount } from '../../loadgen/plans.js'
import { formatBytes, formatCompact, formatCount, formatMs, formatPercent } from '../../report/format.js'
import { tableText } from '../../report/table-text.js'
import type { ResultRow } from '../../results/result.js'
import { type Rows, verdictLines } from '../../trials/row-scenario.js'
import { type HistoryConfig, iterationSeconds, stagesOf } from './options.js'
import { ORIGINS, REFERENCE_ROWS } from './reference.js'
import { CPU_WINDOW_S, HISTORY_COLUMNS, HISTORY_IDENTITY, type HistoryRow, TRENDS, type TrendMs } from './result.js'

export function historyHeading(config: HistoryConfig): string {
  const { cases, duration, rounds, channels, sendersRatio, sendingRate, repeat, transport } = config
  const { startUsers, stages } = stagesOf(config)
  const ramp = stages.map(({ durationMs, users: to }) => `${formatCount(to)} in ${durationMs / 1_000} s`)
  return [
    `  Users: ${formatCount(startUsers)}, then ${ramp.join(', ')}`,
    `  Channels: ${channels}, senders ratio ${sendersRatio}, sending rate ${sendingRate}`,
    `  Iteration: ${rounds} + 2 rounds, about ${iterationSeconds(config).toFixed(1)} s; a run takes about ${Math.ceil(duration + iterationSeconds(config))} s`,
    `  Servers: ${cases.map(({ broker, backends }) => `${broker} x ${backends}`).join(', ')} (transport ${transport})`,
    ...(repeat > 1 ? [`  Repeats: ${repeat}, interleaved`] : []),
  ].join('\n')
}

/** The result, for people: in AnyCable's format for each single run, and as a table for several. */
export function historyText({ rows, runs }: Rows, width: number | undefined): string {
  const [only] = runs.length === 1 ? runs : []
  const parts =
    only === undefined
      ? [
          besideText(rows, width),
          ['All of ours:', '', tableText(HISTORY_COLUMNS, HISTORY_IDENTITY, rows, width)].join('\n'),
        ]
      : [runText(only as HistoryRow)]
  const verdicts = verdictLines(rows, ({ target, backends }) => `${target} x ${backends}`)
  return [parts.join('\n\n'), ...verdicts].join('\n')
}

/** Columns that the figures of others have too. */
const BESIDE_COLUMNS = [
  'broadcastMs.avg',
  'broadcastMs.p95',
  'historyMs.avg',
  'historyMs.p95',
  'rttMs.avg',
  'rttMs.p95',
  'historyRatio',
  'serverCpuSecondsPerWindow',
  'serverPeakRssBytes',
]

/** Our rows and those of others, grouped by number of backends. */
function besideText(rows: readonly ResultRow[], width: number | undefined): string {
  const columns = HISTORY_COLUMNS.filter(({ key }) => HISTORY_IDENTITY.includes(key) || BESIDE_COLUMNS.includes(key))
  const all = [...rows, ...REFERENCE_ROWS].toSorted((a, b) => Number(a.backends) - Number(b.backends))
  const origins = Object.entries(ORIGINS).map(([name, text]) => `  ${name}: ${text}`)
  return [tableText(columns, HISTORY_IDENTITY, all, width), '', ...origins].join('\n')
}

const NAME_CHARS = 21

function runText(row: HistoryRow): string {
  const { report } = row
  if (report === undefined) return `${row.target}: ${row.verdictReason}`
  const seconds = report.durationUs / 1_000_000
  const count = (name: string, value: number) => line(name, `${value} ${(value / seconds).toFixed(2)}/s`)
  const trend = (key: keyof typeof TRENDS) => line(TRENDS[key], trendText(row[key]))
  const { connection, subscription, history } = report.checks
  const checks = [connection, subscription, history]
  const passes = checks.reduce((sum, check) => sum + check.passes, 0)
  const fails = checks.reduce((sum, check) => sum + check.fails, 0)
  return [
    ...checkLines('successful connection', connection),
    ...checkLines('successful subscription', subscription),
    ...checkLines('history received', history),
    '',
    count('acks_rcvd', report.acksReceived),
    trend('broadcastMs'),
    count('broadcasts_rcvd', report.broadcastsReceived),
    count('broadcasts_sent', report.broadcastsSent),
    line('checks', `${formatPercent(passes / Math.max(1, passes + fails))} ✓ ${passes} ✗ ${fails}`),
    line(
      'data_received',
      `${formatCompact(report.bytesReceived)}B ${formatCompact(report.bytesReceived / seconds)}B/s`,
    ),
    line('data_sent', `${formatCompact(report.bytesSent)}B ${formatCompact(report.bytesSent / seconds)}B/s`),
    trend('historyMs'),
    count('history_rcvd', report.historyReceived),
    trend('iterationMs'),
    count('iterations', report.iterations),
    trend('rttMs'),
    trend('subackMs'),
    line('vus_max', String(report.maxUsers)),
    trend('connectingMs'),
    count('ws_msgs_received', report.messagesReceived),
    count('ws_msgs_sent', report.messagesSent),
    count('ws_sessions', report.sessions),
    '',
    ...verifiedLines(row),
    '',
    ...costLines(row),
  ].join('\n')
}

function verifiedLines({ report }: HistoryRow): string[] {
  const { sessions, live, histories, joined } = report.verified
  const faults = ({ expected, misses, duplicates, inversions }: typeof live) =>
    `${formatCount(expected)} expected, ${misses} missed, ${duplicates} twice, ${inversions} out of order`
  return [
    `What came live in ${formatCount(sessions)} iterations: ${faults(live)}`,
    `History joined with live in ${formatCount(histories)}: ${faults(joined)}`,
  ]
}

function costLines(row: HistoryRow): string[] {
  const seconds = (value: unknown) => `${Number(value).toFixed(2)} s`
  const late = row.generatorLateMs as TrendMs | null
  return [
    `Servers: CPU ${seconds(row.serverCpuSeconds)} (${seconds(row.serverCpuSecondsPerWindow)} per ${CPU_WINDOW_S} s with all users), ` +
      `peak RSS ${formatBytes(Number(row.serverPeakRssBytes))}, event-loop lag p99 ${formatMs(row.serverEventLoopLagMs?.p99 ?? null)}`,
    ...(row.brokerCpuSeconds === null
      ? []
      : [`Broker: CPU ${seconds(row.brokerCpuSeconds)}, peak RSS ${formatBytes(Number(row.brokerPeakRssBytes))}`]),
    ...(row.balancerCpuSeconds === null ? [] : [`Balancer: CPU ${seconds(row.balancerCpuSeconds)}`]),
    `Generator: CPU ${seconds(row.generatorCpuSeconds)}, ${formatPercent(row.generatorUtilization ?? 0)} of its core with all users, ` +
      `its timers late by p95 ${formatMs(late?.p95 ?? null)} max ${formatMs(late?.max ?? null)}`,
    `Verdict: ${row.verdict}${row.verdictReason === null ? '' : ` (${row.verdictReason})`}`,
  ]
}

function line(name: string, text: string): string {
  return `${name.padEnd(NAME_CHARS, '.')}: ${text}`
}

function trendText(trend: TrendMs | null): string {
  if (trend === null) return 'nothing measured'
  const { avg, min, med, max, p90, p95 } = trend
  const parts = { avg, min, med, max, 'p(90)': p90, 'p(95)': p95 }
  return Object.entries(parts)
    .map(([name, ms]) => `${name}=${formatMs(ms)}`)
    .join(' ')
}

function checkLines(name: string, { passes, fails }: CheckCount): string[] {
  if (fails === 0) return [`✓ ${name}`]
  return [`✗ ${name}`, ` ↳  ${Math.floor((passes / (passes + fails)) * 100)}% — ✓ ${passes} / ✗ ${fails}`]
}
