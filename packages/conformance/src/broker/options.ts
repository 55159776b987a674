import { randomBytes } from 'node:crypto'
import type { HistoryOptions } from 'webmq-server/ports'
import { historyOf } from './history-of.js'

/** Options that brokers share. */
export interface CommonBrokerOptions extends HistoryOptions {
  readonly brokerNamespace: string
  readonly brokerTimeoutMs: number
  readonly brokerStartTimeoutMs: number
  readonly brokerHeartbeatMs: number
  readonly brokerMaxPendingBytes: number
  readonly dedupeWindowMs: number
  readonly dedupeMaxIds: number
  readonly maxPayloadBytes: number
}

/** Options for a broker under test: a namespace that no other test has, limits that no test reaches, no history. */
export function brokerOptions<T extends object>(more: T): CommonBrokerOptions & T {
  return {
    brokerNamespace: `test-${randomBytes(6).toString('hex')}`,
    brokerTimeoutMs: 5_000,
    brokerStartTimeoutMs: 5_000,
    brokerHeartbeatMs: 1_000,
    brokerMaxPendingBytes: 64 * 1_048_576,
    dedupeWindowMs: 60_000,
    dedupeMaxIds: 1_000,
    maxPayloadBytes: 1_048_576,
    ...historyOf(),
    ...more,
  }
}
