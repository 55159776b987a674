import type { BrokerReport } from './broker-watch.js'

/** What a node is doing. `stopped` is for good. */
export type NodeStatus = 'starting' | 'ok' | 'draining' | 'stopped'

/** What leaves a node ready. Each is absent while all is well. */
interface Notices {
  /** With other options that all must share, or of another version. */
  readonly differentPeers?: number | undefined
  readonly otherLogPeers?: number | undefined
  /** Absent without a database. */
  readonly outbox?: string | undefined
  /** Why that is `down`, if known; without secrets. */
  readonly outboxReason?: string | undefined
  /** Publishes that wait for a broker that is too slow. */
  readonly waitingPublishes?: number | undefined
  /** `refused`: the changed files cannot be used. */
  readonly certificate?: 'refused' | 'expired' | undefined
  /** How far the clock of another node is from that of this one. */
  readonly clockApartMs?: number | undefined
  /** Part of a rule of history that the full log holds. */
  readonly logHeldShare?: number | undefined
  /** Since the start. */
  readonly auditLinesLost?: number | undefined
  /** Lines that are not written yet. */
  readonly auditWaitingBytes?: number | undefined
  readonly webhook?: 'open' | undefined
}

/** The answer of `/health`. */
export interface Health extends Notices {
  /** Only `stopped` is answered with 503. */
  readonly status: NodeStatus
  readonly node: string
  readonly version: string
  readonly uptimeMs: number
  readonly connections: number
  /** The most that the node holds; absent until its port is open. */
  readonly connectionLimit?: number
  readonly broker: BrokerReport
  /** Absent until it is chosen. */
  readonly transport?: TransportChoice
}

/** The answer of `/ready`: whether a load balancer should send connections here. */
export interface Readiness extends Notices {
  /** Everything but `ready` is answered with 503. */
  readonly status: 'ready' | Exclude<NodeStatus, 'ok'> | 'broker-down' | 'full'
  readonly broker: BrokerReport
}

/**
 * Whether a node can serve. Without its broker it gets no messages of other nodes. A `blocked` broker still delivers and refuses
 * publishes on all nodes alike, so another node would be no better. Nor would it be while nodes log different keys.
 * @param tellsFull A node that holds as many connections as it may says `full`.
 */
export function readinessOf(health: Health, tellsFull = false): Readiness {
  const {
    node,
    version,
    uptimeMs,
    transport,
    connections,
    connectionLimit = Number.POSITIVE_INFINITY,
    ...known
  } = health
  const { status, broker } = known
  if (status !== 'ok') return { ...known, status }
  if (broker.status === 'down') return { ...known, status: 'broker-down' }
  return { ...known, status: tellsFull && connections >= connectionLimit ? 'full' : 'ready' }
}

export interface TransportChoice {
  readonly name: string
  /** `option`: the option `transport` names it. `auto`: it was chosen when the server started. */
  readonly chosen: 'auto' | 'option'
  /** Why it is not the native engine, and how to get that; only when `auto` chose another transport. */
  readonly reason?: string
}

/** A line for the log: which transport runs, why, and what it costs. */
export function describeTransport({ name, chosen, reason }: TransportChoice): string {
  if (chosen === 'option') return `the ${name} transport runs, as the option says`
  if (reason === undefined) return `the ${name} transport runs`
  return `the ${name} transport runs, because ${reason}. It has one thread and delivers several times fewer messages per core than the native engine`
}
