import type { BrokerKind } from '../brokers/broker-choice.js'
import type { LatencyBars, LatencySummary } from '../measure/latency-histogram.js'
import type { MachineInfo } from '../measure/machine.js'
import type { AssertionResult } from '../scenario.js'
import type { ClientsConfig, ClientsOverTime, ClientsReport } from './clients-report.js'
import { column, faults, VERDICT_COLUMN } from './columns.js'
import type { ResultColumn, ResultDistribution, ResultRecord, ResultRow, ResultTimeline } from './result.js'

/** The JSON of the `clients` scenario: one run, no table. */
export interface ClientsRecord
  extends Omit<ClientsReport, 'results' | 'broker' | 'total' | 'cores'>,
    Partial<Pick<ClientsReport, 'broker' | 'total' | 'cores'>>,
    Partial<Pick<ResultRecord, 'versions'>> {
  /** The exact command line; with `config` and `machine` it can be run again. */
  readonly command: string
  readonly scenario: 'clients'
  readonly machine: MachineInfo
  readonly config: Omit<ClientsConfig, 'clientsBy'> & Partial<Pick<ClientsConfig, 'clientsBy'>>
  readonly results: ClientsReport['results']
  readonly assertions: readonly AssertionResult[]
}

export const CLIENTS_COLUMNS: readonly ResultColumn[] = [
  column('target', 'Target', 'text'),
  column('subscribers', 'Clients', 'count'),
  column('backends', 'Backends', 'count'),
  column('listens', 'Listens', 'count'),
  { ...column('publishRate', 'Messages per second and client', 'number'), unit: '1/s' },
  column('keyPoolSize', 'Keys', 'count'),
  column('messageSize', 'Payload', 'bytes'),
  column('publishedPerSecond', 'Published/s', 'rate'),
  column('deliveriesPerSecond', 'Deliveries/s', 'rate', 'higher'),
  column('latencyMs.p50', 'p50', 'ms', 'lower'),
  column('latencyMs.p95', 'p95', 'ms', 'lower'),
  column('latencyMs.p99', 'p99', 'ms', 'lower'),
  column('latencyMs.max', 'max', 'ms', 'lower'),
  faults('gapCount', 'Lost'),
  faults('duplicateCount', 'Duplicates'),
  faults('reorderedCount', 'Out of order'),
  faults('publishErrorCount', 'Failed publishes'),
  column('refusedCount', 'Refused for a time', 'count'),
  column('drainMs', 'Drain', 'ms', 'lower'),
  column('serverCpuSeconds', 'Server CPU', 'seconds', 'lower'),
  column('brokerCpuSeconds', 'Broker CPU', 'seconds', 'lower'),
  { ...column('deliveriesPerServerCpuSecond', 'Deliveries per CPU second', 'count', 'higher'), unit: '1/s' },
  {
    ...column('deliveriesPerTotalCpuSecond', 'Deliveries per CPU second of servers and broker', 'count', 'higher'),
    unit: '1/s',
  },
  column('serverRssBytes', 'Server RSS', 'bytes', 'lower'),
  column('generatorUtilization', 'Generator busy', 'percent'),
  column('clientsBy', 'Clients by', 'text'),
  VERDICT_COLUMN,
]
export const CLIENTS_IDENTITY: readonly string[] = [
  'target',
  'subscribers',
  'backends',
  'listens',
  'publishRate',
  'keyPoolSize',
  'messageSize',
  'clientsBy',
]

export function isClientsRecord(value: unknown): value is ClientsRecord {
  if (typeof value !== 'object' || value === null) return false
  const record = value as Readonly<Record<string, unknown>>
  const parts = ['config', 'results', 'server', 'rates', 'generator', 'machine']
  return (
    record.scenario === 'clients' && parts.every((part) => typeof record[part] === 'object' && record[part] !== null)
  )
}

/** Name of a row. Each broker is another target, so that you can compare two brokers. */
export function clientsTarget(transport: string, broker: BrokerKind, target?: ClientsConfig['target']): string {
  const server = target === 'by-hand' ? target : `webmq-${transport}`
  return broker === 'memory' ? server : `${server}+${broker}`
}

/** The run as a table of one row, which can be written, plotted and compared like others. */
export function clientsRecord(record: ClientsRecord): ResultRecord {
  const { config, results, rates, server, broker, total, generator } = record
  const missingCount = results.expectedCount - results.deliveredCount
  const { publishErrorCount, refusedCount, unacknowledgedCount } = record.irregularities
  const hasLoss = missingCount !== 0 || results.duplicateCount !== 0 || results.reorderedCount !== 0
  const refusal = publishErrorCount === 0 ? '' : `; publishes failed: ${record.verdictReason}`
  const row: ResultRow = {
    target: clientsTarget(config.transport, config.broker, config.target),
    mode: 'clients',
    subscribers: config.clients,
    backends: config.backends,
    listens: config.listens,
    publishRate: config.publishRate,
    keyPoolSize: config.keyPoolSize,
    messageSize: config.messageSize,
    // A bench that knew no other did not say it.
    clientsBy: config.clientsBy ?? 'library',
    publishedPerSecond: rates.publishedPerSecond,
    deliveriesPerSecond: rates.deliveredPerSecond,
    bytesPerSecond: rates.deliveredPerSecond * config.messageSize,
    gapCount: missingCount,
    duplicateCount: results.duplicateCount,
    reorderedCount: results.reorderedCount,
    publishErrorCount,
    refusedCount,
    deliveredRatio: 1 - results.lossRatio,
    acknowledgedRatio: 1 - (publishErrorCount + unacknowledgedCount) / Math.max(1, results.publishedCount),
    drainMs: results.drainMs,
    serverCpuSeconds: server.cpuSeconds,
    deliveriesPerServerCpuSecond: server.deliveriesPerCpuSecond,
    serverCpuUsPerDelivery: server.deliveriesPerCpuSecond === null ? null : 1_000_000 / server.deliveriesPerCpuSecond,
    brokerCpuSeconds: broker?.cpuSeconds ?? null,
    // For a single server the columns would be equal.
    deliveriesPerTotalCpuSecond: config.broker === 'memory' ? null : (total?.deliveriesPerCpuSecond ?? null),
    serverRssBytes: server.rssBytes,
    latencyMs: results.latencyMs,
    serverEventLoopLagMs: results.perBackend[0]?.serverEventLoopLagMs ?? null,
    generatorCpuSeconds: generator.cpuSeconds,
    generatorUtilization: generator.utilization,
    verdict: hasLoss ? 'lost messages' : record.verdict,
    verdictReason: hasLoss
      ? `${missingCount} lost, ${results.duplicateCount} doubled, ${results.reorderedCount} out of order${refusal}`
      : record.verdictReason,
    repeatCount: 1,
    spread: {},
  }
  return {
    scenario: record.scenario,
    command: record.command,
    machine: record.machine,
    config: { ...config },
    versions: record.versions ?? {},
    assertions: record.assertions,
    columns: CLIENTS_COLUMNS,
    identity: CLIENTS_IDENTITY,
    rows: [row],
    runs: [],
    ...(record.overTime === undefined ? {} : { timelines: [timelineOf(row.target, record.overTime)] }),
    ...(record.latencyBars === undefined ? {} : { distributions: [latencyOf(record.latencyBars, results.latencyMs)] }),
    notes: [],
  }
}

function timelineOf(
  title: string,
  { stepMs, publishedPerSecond, deliveredPerSecond, cores }: ClientsOverTime,
): ResultTimeline {
  const known = Object.entries(cores).filter(([, values]) => values.some((value) => value !== null))
  return {
    title,
    stepMs,
    bands: [],
    panels: [
      {
        title: 'Throughput',
        unit: '1/s',
        format: 'rate',
        lines: [
          { name: 'delivered', values: deliveredPerSecond },
          { name: 'published', values: publishedPerSecond },
        ],
      },
      {
        title: 'Busy cores',
        unit: '',
        format: 'number',
        lines: known.map(([name, values]) => ({ name, values })),
      },
    ],
  }
}

function latencyOf(bars: LatencyBars, { p50, p95, p99 }: LatencySummary): ResultDistribution {
  const marks = Object.entries({ p50, p95, p99 })
  return {
    title: 'Latency',
    bars,
    marks: marks.flatMap(([label, atMs]) => (atMs === null ? [] : [{ label, atMs }])),
  }
}
