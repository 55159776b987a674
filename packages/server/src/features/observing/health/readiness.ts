import type { BrokerReport } from './broker-watch.js'

/** What a node is doing. `stopped` is for good. */
export type NodeStatus = 'starting' | 'ok' | 'draining' | 'stopped'

/** What leaves a node ready: how many other nodes do not agree with it, absent while there are none; its database; a slow broker. */
interface Notices {
  /** With other options that all must share, or of another version. */
  readonly differentPeers?: number | undefined
  readonly otherLogPeers?: number | undefined
  /** Absent without a database. */
  readonly outbox?: string | undefined
  /** Why that is `down`, if known; without secrets. */
  readonly outboxReason?: string | undefined
  /** Publishes that wait for a broker that is too slow; absent while there are none. */
  readonly waitingPublishes?: number | undefined
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
  const { status, broker, differentPeers, otherLogPeers, outbox, outboxReason, waitingPublishes, connections } = health
  const { connectionLimit = Number.POSITIVE_INFINITY } = health
  const known = { broker, differentPeers, otherLogPeers, outbox, outboxReason, waitingPublishes }
  if (status !== 'ok') return { status, ...known }
  if (broker.status === 'down') return { status: 'broker-down', ...known }
  return { status: tellsFull && connections >= connectionLimit ? 'full' : 'ready', ...known }
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
