import type { BrokerCapabilities } from '../../../kernel/ports/broker.js'
import type { DedupeOptions } from '../../../kernel/ports/dedupe-window.js'
import type { HistoryOptions } from '../../../kernel/ports/history-rules.js'
import { hasHistory, hasRetained } from '../log/history-log.js'

/** Options of a {@link RemoteBroker}; those of the server have the same names, units and defaults. */
export interface RemoteBrokerOptions extends HistoryOptions, DedupeOptions {
  readonly brokerNamespace: string
  readonly brokerTimeoutMs: number
  readonly brokerStartTimeoutMs: number
  readonly brokerHeartbeatMs: number
  readonly brokerMaxPendingBytes: number
  readonly maxPayloadBytes: number
}

/** What the server gives a broker that it chooses by an address. */
export interface AddressedBrokerOptions extends RemoteBrokerOptions {
  readonly broker: string
}

/** What a broker behind links can do: its log is one for all nodes, and outlives them. */
export function capabilitiesOf(options: HistoryOptions, ordered: boolean): BrokerCapabilities {
  const history = hasHistory(options)
  return {
    history,
    retained: hasRetained(options),
    ordered,
    sharedLog: history,
    confirms: true,
    queueGroups: true,
    durable: history,
    manyNodes: true,
  }
}
