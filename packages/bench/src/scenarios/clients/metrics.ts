import type { MetricKinds, Metrics } from '../../assertions.js'
import type { ClientsReport } from '../../results/clients-report.js'
import { largest } from './result.js'

/** Metrics for `--assert` in this scenario. */
export const CLIENTS_METRICS = {
  p50: 'milliseconds',
  p95: 'milliseconds',
  p99: 'milliseconds',
  max: 'milliseconds',
  published: 'count',
  expected: 'count',
  delivered: 'count',
  loss: 'ratio',
  duplicates: 'count',
  reordered: 'count',
  unexpected: 'count',
  fanout: 'count',
  drain: 'milliseconds',
  publishRate: 'count',
  deliveryRate: 'count',
  publishErrors: 'count',
  reconnects: 'count',
  gaps: 'count',
  clientErrors: 'count',
  closes: 'count',
  serverCpu: 'seconds',
  brokerCpu: 'seconds',
  serverRss: 'bytes',
  serverLag: 'milliseconds',
  deliveriesPerCpuSecond: 'count',
  deliveriesPerTotalCpuSecond: 'count',
  saturated: 'count',
} as const satisfies MetricKinds

/** The report's figures by the names that `--assert` uses. */
export function clientsMetrics(report: ClientsReport): Metrics {
  const { results, rates, irregularities, server, broker, total } = report
  return {
    p50: results.latencyMs.p50,
    p95: results.latencyMs.p95,
    p99: results.latencyMs.p99,
    max: results.latencyMs.max,
    published: results.publishedCount,
    expected: results.expectedCount,
    delivered: results.deliveredCount,
    loss: results.lossRatio,
    duplicates: results.duplicateCount,
    reordered: results.reorderedCount,
    unexpected: irregularities.unexpectedCount,
    fanout: results.fanOutRatio,
    drain: results.drainMs,
    publishRate: rates.publishedPerSecond,
    deliveryRate: rates.deliveredPerSecond,
    publishErrors: irregularities.publishErrorCount,
    reconnects: irregularities.reconnectCount,
    gaps: irregularities.gapCount,
    clientErrors: irregularities.clientErrorCount,
    closes: irregularities.closedCount,
    serverCpu: server.cpuSeconds,
    brokerCpu: broker.cpuSeconds,
    serverRss: server.rssBytes,
    serverLag: largest(results.perBackend.map((backend) => backend.serverEventLoopLagMs.p99)),
    deliveriesPerCpuSecond: server.deliveriesPerCpuSecond,
    deliveriesPerTotalCpuSecond: total.deliveriesPerCpuSecond,
    saturated: report.verdict === 'ok' ? 0 : 1,
  } satisfies Record<keyof typeof CLIENTS_METRICS, number | null>
}
