import type { Logger } from '../../kernel/base/logger.js'
import type { Broker } from '../../kernel/ports/broker.js'
import type { LogAgreementContext } from './log-agreement.js'

export interface NodesContext {
  /** Name of this node, new with every start: 1 to 36 characters of `[A-Za-z0-9_-]`. */
  readonly node: string
  readonly version: string
  /** A hash of the options that all nodes must share. */
  readonly fingerprint: string
  /** Absent: it does not matter which keys other nodes log. */
  readonly log?: LogAgreementContext
  readonly broker: Pick<Broker, 'capabilities' | 'bind' | 'publish'>
  /** Largest message that other nodes accept. */
  readonly maxPayloadBytes: number
  /** When a node crashes, what it shares is gone everywhere within this time. */
  readonly ttlMs: number
  /** Nodes that are known, and do not answer within this time, are not waited for. Default 1,000. */
  readonly waitMs?: number
  readonly logger: Pick<Logger, 'debug' | 'warn'>
  /** A monotonic clock, in milliseconds. */
  readonly now?: () => number
}

/** Counters since the start; gauges at the time of the call. */
export interface NodesStats {
  readonly peerCount: number
  /** Other nodes with other options, or of another version. */
  readonly differentCount: number
  /** Those of them that log other keys. */
  readonly otherLogCount: number
  /** Largest distance of another node's clock; 0 while all are less than 30 s apart. */
  readonly clockApartMs: number
  /** Messages that could not be read, and those of nodes above the limit. */
  readonly droppedCount: number
}
