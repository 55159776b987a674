import type { LatencySummary } from '../../measure/latency-histogram.js'
import { formatBytes, formatCount, formatMs, formatPercent, formatRate } from '../../report/format.js'
import type { BackendResult, ClientsConfig, ClientsReport } from '../../results/clients-report.js'
import { isDoubtful } from '../../results/result.js'
import { coresText } from './cores.js'

export function clientsHeading(config: ClientsConfig): string {
  const server = config.target === 'by-hand' ? config.target : `transport ${config.transport}`
  return [
    `  Clients: ${formatCount(config.clients)} (${config.listens} listens, ${config.publishRate} msg/s each)`,
    `  Backends: ${config.backends} (${server}, broker ${config.brokerAddress ?? config.broker})`,
    `  Key pool size: ${formatCount(config.keyPoolSize)}`,
    `  Message size: ${formatCount(config.messageSize)} B`,
    `  Duration: ${config.duration}s after ${config.warmup}s of warm-up`,
    `  Clients by: ${config.clientsBy} (${config.workers} ${config.workers === 1 ? 'thread' : 'threads'}, seed ${config.seed})`,
  ].join('\n')
}

export function clientsText(report: ClientsReport): string {
  const sections = [
    verdictLine(report),
    section('Latency', latencyLines(report)),
    section('Throughput', throughputLines(report)),
    section('Backend Distribution', report.results.perBackend.map(backendLine)),
    section('Cost', costLines(report)),
    section('Irregularities', irregularityLines(report)),
  ]
  return sections.filter((text) => text !== '').join('\n\n')
}

/** First, because it says whether the figures below are the server's. */
function verdictLine({ verdict, verdictReason, cores, interrupted }: ClientsReport): string {
  const notServers = isDoubtful(verdict) ? ": the latencies are not the server's" : ''
  const partial = interrupted === true ? '\nInterrupted: the figures are of the time until then, without a drain.' : ''
  return `Verdict: ${verdict} (${verdictReason ?? coresText(cores)})${notServers}${partial}`
}

function latencyLines({ results: { latencyMs } }: ClientsReport): string[] {
  return [
    `p50: ${formatMs(latencyMs.p50)}`,
    `p95: ${formatMs(latencyMs.p95)}`,
    `p99: ${formatMs(latencyMs.p99)}`,
    `max: ${formatMs(latencyMs.max)}`,
  ]
}

function throughputLines({ results, rates, irregularities }: ClientsReport): string[] {
  const missingCount = results.expectedCount - results.deliveredCount
  const { publishErrorCount, firstPublishError, refusedCount } = irregularities
  const firstError = publishErrorCount === 0 ? '' : `, the first: ${firstPublishError}`
  const givenUp = irregularities.hasDrainTimedOut ? ' (given up)' : ''
  return [
    `Published: ${formatCount(results.publishedCount)} msgs (${formatRate(rates.publishedPerSecond)})`,
    `Failed publishes: ${formatCount(publishErrorCount)}${firstError}`,
    `Refused for a time: ${formatCount(refusedCount)}`,
    `Expected: ${formatCount(results.expectedCount)} msgs (${formatRate(rates.expectedPerSecond)})`,
    `Delivered: ${formatCount(results.deliveredCount)} msgs (${formatRate(rates.deliveredPerSecond)} within the window)`,
    `Fan-out ratio: ${results.fanOutRatio.toFixed(2)}x`,
    `Loss: ${formatPercent(results.lossRatio)}${missingCount === 0 ? '' : ` (${formatCount(missingCount)} msgs)`}`,
    `Duplicates: ${formatCount(results.duplicateCount)}`,
    `Order violations: ${formatCount(results.reorderedCount)}`,
    `Drain time: ${formatMs(results.drainMs)}${givenUp}`,
  ]
}

function backendLine(backend: BackendResult): string {
  const parts = [
    formatRate(backend.deliveredPerSecond),
    `${formatCount(backend.clientCount)} clients`,
    `p99 ${formatMs(backend.latencyMs.p99)}`,
    `CPU ${backend.serverCpuSeconds.toFixed(2)} s`,
    `RSS ${formatBytes(backend.serverRssBytes)}`,
    `event-loop lag p99 ${formatMs(backend.serverEventLoopLagMs.p99)}`,
  ]
  return `Backend ${backend.backend} (port ${backend.port}): ${parts.join(', ')}`
}

function costLines({ server, broker, total, generator }: ClientsReport): string[] {
  const perCpuSecond =
    server.deliveriesPerCpuSecond === null
      ? ''
      : ` (${formatCount(server.deliveriesPerCpuSecond)} deliveries per CPU second)`
  return [
    `Servers: CPU ${server.cpuSeconds.toFixed(2)} s${perCpuSecond}, RSS ${formatBytes(server.rssBytes)}`,
    ...(broker.cpuSeconds === null
      ? []
      : [
          `Broker: CPU ${broker.cpuSeconds.toFixed(2)} s (${formatCount(total.deliveriesPerCpuSecond ?? 0)} deliveries per ` +
            'CPU second of servers and broker)',
        ]),
    `Generator: CPU ${generator.cpuSeconds.toFixed(2)} s, busiest worker ${formatPercent(generator.utilization)}, ` +
      `event-loop lag ${brief(generator.eventLoopLagMs)}, sent late by ${brief(generator.sendLagMs)}`,
  ]
}

function irregularityLines({ irregularities }: ClientsReport): string[] {
  const { unexpectedCount, unacknowledgedCount, reconnectCount, gapCount, clientErrorCount, closedCount, firstClose } =
    irregularities
  const lines: string[] = []
  if (unexpectedCount > 0) lines.push(`Unexpected or damaged messages: ${formatCount(unexpectedCount)}`)
  if (unacknowledgedCount > 0) lines.push(`Publishes without an answer: ${formatCount(unacknowledgedCount)}`)
  if (reconnectCount > 0) lines.push(`Reconnects: ${formatCount(reconnectCount)}`)
  if (gapCount > 0) lines.push(`Times a client was told that messages may be missing: ${formatCount(gapCount)}`)
  if (clientErrorCount > 0) lines.push(`Errors in clients: ${formatCount(clientErrorCount)}`)
  if (closedCount > 0) lines.push(`Connections that ended early: ${formatCount(closedCount)}, the first: ${firstClose}`)
  return lines
}

function brief({ p50, p99 }: LatencySummary): string {
  return `p50 ${formatMs(p50)} p99 ${formatMs(p99)}`
}

function section(title: string, lines: readonly string[]): string {
  return lines.length === 0 ? '' : [`${title}:`, ...lines.map((line) => `  ${line}`)].join('\n')
}
