import type { ResultColumn } from './result.js'

/** Columns that several scenarios share; each scenario's table picks from these and adds its own. */
const TARGET: ResultColumn = { key: 'target', title: 'Target', unit: '', format: 'text' }
const MODE: ResultColumn = { key: 'mode', title: 'Mode', unit: '', format: 'text' }
const SUBSCRIBERS: ResultColumn = { key: 'subscribers', title: 'Connections', unit: '', format: 'count' }

/** Columns that identify a row in every scenario. */
export const IDENTITY_COLUMNS = [TARGET, MODE, SUBSCRIBERS] as const

/** Throughput of fan-out. */
export const DELIVERY_COLUMNS = [
  { key: 'publishedPerSecond', title: 'Published/s', unit: '1/s', format: 'rate', better: 'higher' },
  { key: 'deliveriesPerSecond', title: 'Deliveries/s', unit: '1/s', format: 'rate', better: 'higher' },
  { key: 'bytesPerSecond', title: 'Bandwidth', unit: 'B/s', format: 'bytesPerSecond', better: 'higher' },
] as const satisfies readonly ResultColumn[]

/** Cost of a delivery. */
export const DELIVERY_COST_COLUMN = {
  key: 'deliveriesPerServerCpuSecond',
  title: 'Deliveries/CPU s',
  unit: '1/s',
  format: 'rate',
  better: 'higher',
} as const satisfies ResultColumn

/** Cost where one node publishes and another delivers: in total, and by process. */
export const RELAY_COLUMNS = [
  {
    key: 'deliveriesPerTotalCpuSecond',
    title: 'Deliveries/CPU s with broker',
    unit: '1/s',
    format: 'rate',
    better: 'higher',
  },
  { key: 'wseRatio', title: 'WSE', unit: '', format: 'ratio', better: 'higher' },
  { key: 'publisherCpuSeconds', title: 'Node A CPU', unit: 's', format: 'seconds', better: 'lower' },
  { key: 'listenerCpuSeconds', title: 'Node B CPU', unit: 's', format: 'seconds', better: 'lower' },
  { key: 'brokerCpuSeconds', title: 'Broker CPU', unit: 's', format: 'seconds', better: 'lower' },
] as const satisfies readonly ResultColumn[]

/** The worst run of each, because losses must not hide behind a median. */
export const LOSS_COLUMNS = [
  { key: 'gapCount', title: 'Gaps', unit: '', format: 'count', better: 'lower', repeats: 'max' },
  { key: 'duplicateCount', title: 'Duplicates', unit: '', format: 'count', better: 'lower', repeats: 'max' },
] as const satisfies readonly ResultColumn[]

/** Resources of the server. */
export const SERVER_COLUMNS = [
  { key: 'serverCpuSeconds', title: 'Server CPU', unit: 's', format: 'seconds', better: 'lower' },
  { key: 'serverRssBytes', title: 'Server RSS', unit: 'B', format: 'bytes', better: 'lower' },
  { key: 'serverEventLoopLagMs.p99', title: 'Event-loop lag p99', unit: 'ms', format: 'ms', better: 'lower' },
] as const satisfies readonly ResultColumn[]

/** Resources of the generator, and the verdict. */
export const JUDGEMENT_COLUMNS = [
  { key: 'generatorCpuSeconds', title: 'Generator CPU', unit: 's', format: 'seconds' },
  { key: 'generatorUtilization', title: 'Generator busy', unit: '', format: 'percent' },
  { key: 'verdict', title: 'Verdict', unit: '', format: 'text' },
] as const satisfies readonly ResultColumn[]

/** Percentiles of a distribution that is a member of the row. */
export function percentileColumns(
  key: string,
  title: string,
  percentiles: readonly ('p50' | 'p95' | 'p99' | 'p999' | 'p9999' | 'max')[],
): ResultColumn[] {
  const words = { p50: 'p50', p95: 'p95', p99: 'p99', p999: 'p99.9', p9999: 'p99.99', max: 'max' }
  return percentiles.map((percentile) => ({
    key: `${key}.${percentile}`,
    title: title === '' ? words[percentile] : `${title} ${words[percentile]}`,
    unit: 'ms',
    format: 'ms',
    better: 'lower',
  }))
}
