import type { HistoryOptions } from '../../ports/history-rules.js'

/** Options of a {@link RemoteBroker}; as in {@link ServerOptions}. */
export interface RemoteBrokerOptions extends HistoryOptions {
  readonly brokerNamespace: string
  readonly brokerTimeoutMs: number
  readonly brokerStartTimeoutMs: number
  readonly brokerHeartbeatMs: number
  readonly brokerMaxPendingBytes: number
  readonly dedupeWindowMs: number
  readonly dedupeMaxIds: number
  readonly maxPayloadBytes: number
}
