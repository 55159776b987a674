import { tableText } from '../../report/table-text.js'
import type { ResultRow } from '../../results/result.js'
import type { Rows } from '../../trials/row-scenario.js'
import type { FleetConfig } from './options.js'
import { FLEET_COLUMNS, FLEET_IDENTITY } from './result.js'

export function fleetHeading(config: FleetConfig): string {
  return [
    `  Fleet: ${config.backends} nodes behind ${config.balancers.join(', then ')} (transport ${config.transport}), broker ${config.brokers.join(', then ')}`,
    `  Clients: ${config.users.toLocaleString('en')} users in ${config.rooms} rooms, ${config.eventStreams} by event streams, ` +
      `${config.publishers} publishers with ${config.publishRate} msg/s each`,
    `  Faults: ${config.faults.join(', ')}; ${config.rest} s of rest after each`,
    `  Keepalive: ping after ${config.pingInterval} s of silence, ${config.pingTimeout} s for its answer`,
  ].join('\n')
}

export function fleetText({ rows }: Rows, width: number | undefined): string {
  const problems = rows.filter(({ verdict }) => verdict !== 'ok')
  const lines = problems.flatMap((row) => [
    `${[row.target, row.fault, row.listensBy ?? []].flat().join(', ')}: ${row.verdict}, ${row.verdictReason}`,
    ...examplesOf(row).map((example) => `  ${example}`),
  ])
  return [
    tableText(FLEET_COLUMNS, FLEET_IDENTITY, rows, width),
    ...(lines.length === 0 ? [] : [lines.join('\n')]),
  ].join('\n\n')
}

function examplesOf({ examples }: ResultRow): readonly unknown[] {
  return Array.isArray(examples) ? examples : []
}
