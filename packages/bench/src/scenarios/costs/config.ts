import type { ServiceBrokerKind } from '../../brokers/broker-choice.js'
import type { TrialConfig } from '../../trials/trial-options.js'

/** Settings of the scenario. */
export interface CostsConfig extends TrialConfig {
  readonly brokers: readonly ('memory' | ServiceBrokerKind)[]
  /** Whose memory is measured. */
  readonly connections: number
  /** Made with a token. */
  readonly connects: number
  /** That get every message. */
  readonly listeners: number
  /** Messages per second through a broker. */
  readonly rate: number
}
