import type { ClientsReport } from '../../results/clients-report.js'
import { column } from '../../results/columns.js'
import type { Cell, ColumnFormat } from '../../results/result.js'
import { largest } from './result.js'

type Metric = readonly [format: ColumnFormat, read: (report: ClientsReport) => Cell]

const METRICS = {
  p50: ['ms', ({ results }) => results.latencyMs.p50],
  p95: ['ms', ({ results }) => results.latencyMs.p95],
  p99: ['ms', ({ results }) => results.latencyMs.p99],
  max: ['ms', ({ results }) => results.latencyMs.max],
  published: ['count', ({ results }) => results.publishedCount],
  expected: ['count', ({ results }) => results.expectedCount],
  delivered: ['count', ({ results }) => results.deliveredCount],
  loss: ['percent', ({ results }) => results.lossRatio],
  duplicates: ['count', ({ results }) => results.duplicateCount],
  reordered: ['count', ({ results }) => results.reorderedCount],
  unexpected: ['count', ({ irregularities }) => irregularities.unexpectedCount],
  fanout: ['count', ({ results }) => results.fanOutRatio],
  drain: ['ms', ({ results }) => results.drainMs],
  publishRate: ['count', ({ rates }) => rates.publishedPerSecond],
  deliveryRate: ['count', ({ rates }) => rates.deliveredPerSecond],
  publishErrors: ['count', ({ irregularities }) => irregularities.publishErrorCount],
  refusals: ['count', ({ irregularities }) => irregularities.refusedCount],
  reconnects: ['count', ({ irregularities }) => irregularities.reconnectCount],
  gaps: ['count', ({ irregularities }) => irregularities.gapCount],
  clientErrors: ['count', ({ irregularities }) => irregularities.clientErrorCount],
  closes: ['count', ({ irregularities }) => irregularities.closedCount],
  serverCpu: ['seconds', ({ server }) => server.cpuSeconds],
  brokerCpu: ['seconds', ({ broker }) => broker.cpuSeconds],
  serverRss: ['bytes', ({ server }) => server.rssBytes],
  serverLag: ['ms', ({ results }) => largest(results.perBackend.map((one) => one.serverEventLoopLagMs.p99))],
  deliveriesPerCpuSecond: ['count', ({ server }) => server.deliveriesPerCpuSecond],
  deliveriesPerTotalCpuSecond: ['count', ({ total }) => total.deliveriesPerCpuSecond],
  saturated: ['count', ({ verdict }) => (verdict === 'ok' ? 0 : 1)],
  verdict: ['text', ({ verdict }) => verdict],
} as const satisfies Readonly<Record<string, Metric>>

/** Metrics for `--assert` in this scenario. */
export const CLIENTS_METRICS = Object.entries<Metric>(METRICS).map(([name, [format]]) => column(name, name, format))

/** The report's figures by the names that `--assert` uses. */
export function clientsMetrics(report: ClientsReport): Readonly<Record<keyof typeof METRICS, Cell>> {
  const values = Object.entries<Metric>(METRICS).map(([name, [, read]]) => [name, read(report)])
  return Object.fromEntries(values) as Record<keyof typeof METRICS, Cell>
}
