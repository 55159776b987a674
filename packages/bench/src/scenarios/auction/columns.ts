import { column, DELIVERY_COST_COLUMN, faults, percentileColumns, VERDICT_COLUMN } from '../../results/columns.js'
import type { ResultColumn } from '../../results/result.js'

const count = (key: string, title: string) => column(key, title, 'count')
const cpu = (key: string, title: string) => column(key, title, 'seconds', 'lower')

export const AUCTION_COLUMNS: readonly ResultColumn[] = [
  column('target', 'Target', 'text'),
  column('mode', 'Mode', 'text'),
  count('subscribers', 'Connections'),
  count('nodes', 'Nodes'),
  column('nodeCpus', 'CPUs each', 'number'),
  column('maxConnections', 'Most', 'count', 'higher'),
  column('limitReason', 'Why no more', 'text'),
  ...percentileColumns('latencyMs', '', ['p50', 'p95', 'p99', 'max']),
  ...percentileColumns('bidMs', 'per bid', ['p50', 'p95', 'p99']),
  column('worstBidMs', 'p99 of the worst bid', 'ms', 'lower'),
  column('largestItemMs', 'p99 of the largest item', 'ms', 'lower'),
  column('growthExponent', 'Growth exponent', 'number', 'lower'),
  { ...column('deliveryRate', 'Delivered', 'percent', 'higher'), repeats: 'min' },
  faults('gapCount', 'Lost'),
  faults('duplicateCount', 'Doubled'),
  faults('reorderedCount', 'Out of order'),
  faults('missingCount', 'Missing against Redis'),
  ...percentileColumns('connectMs', 'Connect', ['p50', 'p99']),
  column('connectsPerSecond', 'Connects/s', 'rate', 'higher'),
  ...percentileColumns('answerMs', 'Bid answered', ['p50', 'p99']),
  cpu('serverCpuSeconds', 'Nodes CPU'),
  column('busiestNodeShare', 'Busiest node', 'percent', 'lower'),
  cpu('brokerCpuSeconds', 'Broker CPU'),
  cpu('redisCpuSeconds', 'Redis CPU'),
  cpu('gatewayCpuSeconds', 'Gateway CPU'),
  cpu('balancerCpuSeconds', 'Balancer CPU'),
  DELIVERY_COST_COLUMN,
  column('deliveriesPerTotalCpuSecond', 'Deliveries/CPU s of all', 'rate', 'higher'),
  column('serverRssBytes', 'Nodes RSS', 'bytes', 'lower'),
  column('serverEventLoopLagMs.p99', 'Event-loop lag p99', 'ms', 'lower'),
  column('generatorCpuSeconds', 'Generator CPU', 'seconds'),
  column('generatorShare', 'of all CPU', 'percent'),
  column('generatorUtilization', 'Generator busy', 'percent'),
  column('cpuPerBidMs', 'CPU of all per bid', 'ms'),
  VERDICT_COLUMN,
]

export const AUCTION_IDENTITY: readonly string[] = ['target', 'mode', 'subscribers', 'nodes', 'nodeCpus']
