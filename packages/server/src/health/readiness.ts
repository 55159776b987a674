import type { BrokerReport } from './broker-watch.js'

/** What a node is doing. `stopped` is for good. */
export type NodeStatus = 'starting' | 'ok' | 'draining' | 'stopped'

/** What `/health` answers, beside the path of the WebSocket endpoint: the process lives, and this is how it is. */
export interface Health {
  /** Only `stopped` is answered with 503. */
  readonly status: NodeStatus
  readonly node: string
  readonly version: string
  readonly uptimeMs: number
  readonly connections: number
  readonly broker: BrokerReport
}

/** What `/ready` answers: whether connections should be sent here. */
export interface Readiness {
  /** Everything but `ready` is answered with 503. */
  readonly status: 'ready' | Exclude<NodeStatus, 'ok'> | 'broker-down'
  readonly broker: BrokerReport
}

/**
 * Whether a node can serve. Without its broker it cannot: what is published elsewhere does not reach it. One that is `blocked` still delivers,
 * and refuses publishes on all nodes alike, so that to send clients to another would help nobody.
 */
export function readinessOf({ status, broker }: Pick<Health, 'status' | 'broker'>): Readiness {
  if (status !== 'ok') return { status, broker }
  return { status: broker.status === 'down' ? 'broker-down' : 'ready', broker }
}
