import type { BalancerName } from 'webmq-services'
import { clientsTarget } from '../../results/clients-record.js'
import { column, faults, percentileColumns, VERDICT_COLUMN } from '../../results/columns.js'
import type { ResultColumn, ResultRow } from '../../results/result.js'
import { NOT_MEASURED } from '../../trials/row-scenario.js'
import { judge } from '../../trials/verdict.js'
import type { FleetBrokerKind } from './durable-broker.js'
import { LISTENS_BY, type ListensBy, seenBy } from './listens-by.js'
import type { FaultWindow, FleetObservation } from './observation.js'
import type { FleetConfig } from './options.js'
import { type WindowFigures, windowFigures } from './window-figures.js'

export interface FleetRow extends ResultRow, Omit<WindowFigures, 'latencyMs' | 'duplicateCount'> {
  readonly fault: FaultWindow['fault']
  readonly listensBy: ListensBy
  /** Users of this kind. */
  readonly listenerCount: number
}

const count = (key: string, title: string) => column(key, title, 'count')
const ms = (key: string, title: string) => column(key, title, 'ms', 'lower')

export const FLEET_COLUMNS: readonly ResultColumn[] = [
  column('target', 'Target', 'text'),
  column('fault', 'Fault', 'text'),
  column('subscribers', 'Users', 'count'),
  column('listensBy', 'Listen by', 'text'),
  count('listenerCount', 'These'),
  count('publishedCount', 'Published'),
  count('expectedCount', 'Expected'),
  count('deliveredCount', 'Delivered'),
  faults('gapCount', 'Lost'),
  faults('duplicateCount', 'Doubled'),
  faults('reorderedCount', 'Out of order'),
  faults('toldGapCount', 'Told gaps'),
  faults('missedInGapCount', 'Missed in gaps'),
  count('retriedCount', 'Publishes retried'),
  faults('failedPublishCount', 'failed'),
  column('faultMs', 'Fault', 'ms'),
  ms('deliveryMs', 'To delivery'),
  ms('publishMs', 'To publish'),
  count('reconnectCount', 'Reconnects'),
  ...percentileColumns('reconnectMs', 'reconnect', ['p50', 'p99', 'max']),
  ms('allConnectedMs', 'All connected'),
  column('mostOpenedIn100Ms', 'Opened in 100 ms', 'count', 'lower'),
  column('mostOpenedIn1S', 'Opened in 1 s', 'count', 'lower'),
  ...percentileColumns('latencyMs', 'latency', ['p50', 'p99', 'max']),
  column('serverCpuSeconds', 'Node CPU', 'seconds', 'lower'),
  column('brokerCpuSeconds', 'Broker CPU', 'seconds', 'lower'),
  column('balancerCpuSeconds', 'Balancer CPU', 'seconds', 'lower'),
  column('generatorCpuSeconds', 'Client CPU', 'seconds'),
  VERDICT_COLUMN,
]

export const FLEET_IDENTITY: readonly string[] = ['target', 'fault', 'subscribers', 'listensBy']

/** A broker, and the load balancer of its nodes. */
export interface FleetPlace {
  readonly kind: FleetBrokerKind
  readonly balancer: BalancerName
}

/** Names nginx; HAProxy is the one that earlier records have. */
export function fleetTarget({ kind, balancer }: FleetPlace, { transport }: Pick<FleetConfig, 'transport'>): string {
  return `${clientsTarget(transport, kind)}${balancer === 'haproxy' ? '' : ` behind ${balancer}`}`
}

/** For each fault, and for the time before the first: a row of the users by WebSocket, and one of those by SSE. */
export function fleetRows(place: FleetPlace, config: FleetConfig, observation: FleetObservation): FleetRow[] {
  const kinds = LISTENS_BY.filter((listensBy) => listensBy === 'WebSocket' || config.eventStreams > 0)
  const seen = kinds.map((listensBy) => ({ listensBy, own: seenBy(listensBy, observation) }))
  const cases = observation.windows.flatMap((window) => seen.map((one) => ({ ...one, window })))
  return cases.map(({ listensBy, own, window }) => {
    const { lostCount, nodeCpuSeconds, clientCpuSeconds, latencyMs, ...figures } = windowFigures(own, window)
    const windowSeconds = (window.endUs - window.startUs) / 1_000_000
    const { duplicateCount, reorderedCount, toldGapCount, failedPublishCount } = figures
    const failures = [
      ...(toldGapCount > 0 ? [`${toldGapCount.toLocaleString('en')} gaps told although all keys are logged`] : []),
      ...(failedPublishCount > 0 ? [`${failedPublishCount.toLocaleString('en')} publishes failed`] : []),
    ]
    return {
      ...NOT_MEASURED,
      ...figures,
      target: fleetTarget(place, config),
      mode: 'fleet',
      fault: window.fault,
      subscribers: config.users,
      listensBy,
      listenerCount: listensBy === 'SSE' ? config.eventStreams : config.users - config.eventStreams,
      publishedPerSecond: figures.publishedCount / windowSeconds,
      deliveriesPerSecond: figures.deliveredCount / windowSeconds,
      bytesPerSecond: (figures.deliveredCount * config.messageSize) / windowSeconds,
      gapCount: lostCount,
      lostCount,
      nodeCpuSeconds,
      clientCpuSeconds,
      serverCpuSeconds: nodeCpuSeconds,
      generatorCpuSeconds: clientCpuSeconds,
      latencyMs: { ...latencyMs, p95: null },
      ...judge({ lostCount, duplicateCount, reorderedCount, failure: failures.join(', ') || null }),
      repeatCount: 1,
      spread: {},
    }
  })
}

/** The row of a broker whose run could not be completed. */
export function failedRow(place: FleetPlace, config: FleetConfig, reason: string): ResultRow {
  return {
    ...NOT_MEASURED,
    target: fleetTarget(place, config),
    mode: 'fleet',
    fault: 'none',
    subscribers: config.users,
    verdict: 'failed',
    verdictReason: reason,
    repeatCount: 1,
    spread: {},
  }
}
