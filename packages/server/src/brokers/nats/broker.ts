import type { Broker } from '../../ports/broker.js'
import { hasHistory } from '../log/history-log.js'
import { RemoteBroker, type RemoteBrokerOptions } from '../remote/broker.js'
import { parseNatsAddress } from './address.js'
import { loadNats } from './credentials.js'
import { NatsDriver } from './driver.js'

/** Options of a broker on NATS; as in {@link ServerOptions}. */
export interface NatsBrokerOptions extends RemoteBrokerOptions {
  /** `nats://…` or `tls://…`. */
  readonly broker: string
  readonly maxPayloadBytes: number
}

/**
 * A broker on NATS: messages go to those who are subscribed now, and those that the rules of the history say are kept by JetStream.
 * @throws {WebMQError} `E_OPTION_INVALID` for the address; `E_BROKER_MISSING` when it needs the library and that is not installed.
 */
export async function createNatsBroker(options: NatsBrokerOptions): Promise<Broker> {
  const address = parseNatsAddress(options.broker)
  const module = await loadNats(address.identity)
  const { maxPayloadBytes } = options
  const log = hasHistory(options) ? { ...options, replicaCount: address.replicaCount } : undefined
  return new RemoteBroker(new NatsDriver({ address, module, maxPayloadBytes, log }), options)
}
