import { DELIVERY_COST_COLUMN, percentileColumns } from '../../results/columns.js'
import type { ResultColumn } from '../../results/result.js'

const count = (key: string, title: string): ResultColumn => ({ key, title, unit: '', format: 'count' })
/** The worst run of each, because losses must not hide behind a median. */
const faults = (key: string, title: string): ResultColumn => ({
  ...count(key, title),
  better: 'lower',
  repeats: 'max',
})
const cpu = (key: string, title: string): ResultColumn => ({
  key,
  title,
  unit: 's',
  format: 'seconds',
  better: 'lower',
})
const ms = (key: string, title: string): ResultColumn => ({ key, title, unit: 'ms', format: 'ms' })

/** The columns of the table. */
export const AUCTION_COLUMNS: readonly ResultColumn[] = [
  { key: 'target', title: 'Target', unit: '', format: 'text' },
  { key: 'mode', title: 'Mode', unit: '', format: 'text' },
  count('subscribers', 'Connections'),
  count('nodes', 'Nodes'),
  ...percentileColumns('latencyMs', '', ['p50', 'p95', 'p99', 'max']),
  ...percentileColumns('bidMs', 'per bid', ['p50', 'p95', 'p99']),
  { ...ms('worstBidMs', 'p99 of the worst bid'), better: 'lower' },
  { ...ms('largestItemMs', 'p99 of the largest item'), better: 'lower' },
  { key: 'growthExponent', title: 'Growth exponent', unit: '', format: 'number', better: 'lower' },
  { key: 'deliveryRate', title: 'Delivered', unit: '', format: 'percent', better: 'higher', repeats: 'min' },
  faults('gapCount', 'Lost'),
  faults('duplicateCount', 'Doubled'),
  faults('reorderedCount', 'Out of order'),
  faults('missingCount', 'Missing against Redis'),
  ...percentileColumns('connectMs', 'Connect', ['p50', 'p99']),
  { key: 'connectsPerSecond', title: 'Connects/s', unit: '1/s', format: 'rate', better: 'higher' },
  ...percentileColumns('answerMs', 'Bid answered', ['p50', 'p99']),
  count('movedCount', 'Moved'),
  ...percentileColumns('liveAgainMs', 'Live again', ['p50', 'p99', 'max']),
  cpu('serverCpuSeconds', 'Nodes CPU'),
  { key: 'busiestNodeShare', title: 'Busiest node', unit: '', format: 'percent', better: 'lower' },
  cpu('brokerCpuSeconds', 'Broker CPU'),
  cpu('redisCpuSeconds', 'Redis CPU'),
  cpu('gatewayCpuSeconds', 'Gateway CPU'),
  cpu('balancerCpuSeconds', 'Balancer CPU'),
  DELIVERY_COST_COLUMN,
  {
    key: 'deliveriesPerTotalCpuSecond',
    title: 'Deliveries/CPU s of all',
    unit: '1/s',
    format: 'rate',
    better: 'higher',
  },
  { key: 'serverRssBytes', title: 'Nodes RSS', unit: 'B', format: 'bytes', better: 'lower' },
  { key: 'serverEventLoopLagMs.p99', title: 'Event-loop lag p99', unit: 'ms', format: 'ms', better: 'lower' },
  { key: 'generatorCpuSeconds', title: 'Generator CPU', unit: 's', format: 'seconds' },
  { key: 'generatorShare', title: 'of all CPU', unit: '', format: 'percent' },
  { key: 'generatorUtilization', title: 'Generator busy', unit: '', format: 'percent' },
  ms('cpuPerBidMs', 'CPU of all per bid'),
  ms('clockOffsetMs', 'Clock offset'),
  ms('clockUncertaintyMs', 'uncertainty'),
  { key: 'verdict', title: 'Verdict', unit: '', format: 'text' },
]

/** Those of them that identify a run. */
export const AUCTION_IDENTITY: readonly string[] = ['target', 'mode', 'subscribers', 'nodes']
