import type { ColumnFormat, ResultColumn } from './result.js'

const UNITS: Readonly<Record<ColumnFormat, string>> = {
  text: '',
  count: '',
  rate: '1/s',
  number: '',
  ms: 'ms',
  seconds: 's',
  bytes: 'B',
  bytesPerSecond: 'B/s',
  ratio: '',
  percent: '',
}

/** A column with the unit of its format. */
export function column(
  key: string,
  title: string,
  format: ColumnFormat,
  better?: ResultColumn['better'],
): ResultColumn {
  return { key, title, unit: UNITS[format], format, ...(better === undefined ? {} : { better }) }
}

/** Counts faults: the worst run of each, because losses must not hide behind a median. */
export function faults(key: string, title: string): ResultColumn {
  return { ...column(key, title, 'count', 'lower'), repeats: 'max' }
}

export const IDENTITY_COLUMNS: readonly ResultColumn[] = [
  column('target', 'Target', 'text'),
  column('mode', 'Mode', 'text'),
  column('subscribers', 'Connections', 'count'),
]

export const DELIVERY_COLUMNS: readonly ResultColumn[] = [
  column('publishedPerSecond', 'Published/s', 'rate', 'higher'),
  column('deliveriesPerSecond', 'Deliveries/s', 'rate', 'higher'),
  column('bytesPerSecond', 'Bandwidth', 'bytesPerSecond', 'higher'),
]

export const DELIVERY_COST_COLUMN = column('deliveriesPerServerCpuSecond', 'Deliveries/CPU s', 'rate', 'higher')

/** Cost where one node publishes and another delivers: in total, and by process. */
export const RELAY_COLUMNS: readonly ResultColumn[] = [
  column('deliveriesPerTotalCpuSecond', 'Deliveries/CPU s with broker', 'rate', 'higher'),
  column('publisherCpuSeconds', 'Node A CPU', 'seconds', 'lower'),
  column('listenerCpuSeconds', 'Node B CPU', 'seconds', 'lower'),
  column('brokerCpuSeconds', 'Broker CPU', 'seconds', 'lower'),
]

export const LOSS_COLUMNS: readonly ResultColumn[] = [
  faults('gapCount', 'Gaps'),
  faults('duplicateCount', 'Duplicates'),
]

export const SERVER_COLUMNS: readonly ResultColumn[] = [
  column('serverCpuSeconds', 'Server CPU', 'seconds', 'lower'),
  column('serverRssBytes', 'Server RSS', 'bytes', 'lower'),
  column('serverEventLoopLagMs.p99', 'Event-loop lag p99', 'ms', 'lower'),
]

export const VERDICT_COLUMN = column('verdict', 'Verdict', 'text')

export const JUDGEMENT_COLUMNS: readonly ResultColumn[] = [
  column('generatorCpuSeconds', 'Generator CPU', 'seconds'),
  column('generatorUtilization', 'Generator busy', 'percent'),
  VERDICT_COLUMN,
]

/** Percentiles of a distribution that is a member of the row. */
export function percentileColumns(
  key: string,
  title: string,
  percentiles: readonly ('p50' | 'p95' | 'p99' | 'p999' | 'p9999' | 'max')[],
): ResultColumn[] {
  const words = { p50: 'p50', p95: 'p95', p99: 'p99', p999: 'p99.9', p9999: 'p99.99', max: 'max' }
  return percentiles.map((percentile) =>
    column(`${key}.${percentile}`, `${title} ${words[percentile]}`.trim(), 'ms', 'lower'),
  )
}
