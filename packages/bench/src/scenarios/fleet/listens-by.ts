import type { FleetObservation } from './observation.js'

/** How users listen. */
export const LISTENS_BY = ['WebSocket', 'SSE'] as const
export type ListensBy = (typeof LISTENS_BY)[number]

/** What these users saw. What publishers did, and the CPU of all processes, belongs to those by WebSocket. */
export function seenBy(listensBy: ListensBy, observation: FleetObservation): FleetObservation {
  const { log, usage } = observation
  const isStream = listensBy === 'SSE'
  const streams = new Set(log.users.filter((user) => user.isStream).map(({ client }) => client))
  const isOwn = ({ client }: { readonly client: string }) => streams.has(client) === isStream
  const unlessStream = <Entry>(entries: readonly Entry[]) => (isStream ? [] : entries)
  return {
    ...observation,
    usage: unlessStream(usage),
    log: {
      ...log,
      acceptedUs: unlessStream(log.acceptedUs),
      retriedUs: unlessStream(log.retriedUs),
      failures: unlessStream(log.failures),
      deliveries: log.deliveries.filter((delivery) => delivery.isStream === isStream),
      connections: log.connections.filter(isOwn),
      gaps: log.gaps.filter(isOwn),
      irregularities: log.irregularities.filter(isOwn),
      users: log.users.filter(isOwn),
    },
  }
}
