import type { FleetLog } from './log.js'

/** Who publishes what, and who listens to it. */
export interface TrafficPlan {
  readonly users: number
  /** Users below this number listen by event streams. */
  readonly eventStreams: number
  readonly publishers: number
  /** User `u` listens to all keys of room `u % rooms`. Every publisher has one key in each room. */
  readonly rooms: number
  readonly publishRate: number
  readonly payloadBytes: number
  /** Time over which the users come. */
  readonly rampMs: number
}

export interface FleetWorkerData extends TrafficPlan {
  readonly url: string
  /** Of all threads, this one plays the users and publishers whose number modulo `workerCount` is `worker`. */
  readonly worker: number
  readonly workerCount: number
  /** Time to wait for the answer to a heartbeat. */
  readonly heartbeatTimeoutMs: number
}

/** Main thread to worker: publish no more; hand over the log and end. */
export type FleetCommand = { readonly type: 'quiesce' } | { readonly type: 'finish' }

export interface FleetStatus {
  /** Users whose first listen was accepted, and publishers that have been connected. */
  readonly readyCount: number
  /** Clients that are connected, by the name of the node. */
  readonly connections: Readonly<Record<string, number>>
  /** Those of publishers. */
  readonly publisherConnections: Readonly<Record<string, number>>
  readonly deliveredCount: number
  readonly pendingCount: number
  /** Of the oldest message that is not accepted. */
  readonly oldestPendingMs: number
  /** The last error outside of a promise, or the last reason of a failed attempt to connect. */
  readonly trouble: string | null
}

export type FleetEvent =
  | { readonly type: 'status'; readonly status: FleetStatus }
  | { readonly type: 'log'; readonly log: FleetLog }

export function keyOf(room: number, publisher: number): string {
  return `${roomOf(room)}.${publisher}`
}

export function patternOf(room: number): string {
  return `${roomOf(room)}.*`
}

/** Keys that are logged. */
export const LOGGED_PATTERN = 'fleet.#'

function roomOf(room: number): string {
  return `fleet.room-${room}`
}
