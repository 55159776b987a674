import type { Broker } from '../broker.js'
import { parseNatsAddress } from './nats/nats-address.js'
import { loadNats } from './nats/nats-credentials.js'
import { NatsDriver } from './nats/nats-driver.js'
import { RemoteBroker, type RemoteBrokerOptions } from './remote/remote-broker.js'

/** Options of a broker on NATS; as in {@link ServerOptions}. */
export interface NatsBrokerOptions extends RemoteBrokerOptions {
  /** `nats://…` or `tls://…`. */
  readonly broker: string
  readonly maxPayloadBytes: number
}

/**
 * A broker on core NATS: messages go to those who are subscribed now, and nothing is kept.
 * @throws {WebMQError} `E_OPTION_INVALID` for the address; `E_BROKER_MISSING` when it needs the library and that is not installed.
 */
export async function createNatsBroker(options: NatsBrokerOptions): Promise<Broker> {
  const address = parseNatsAddress(options.broker)
  const module = await loadNats(address.identity)
  return new RemoteBroker(new NatsDriver({ address, module, maxPayloadBytes: options.maxPayloadBytes }), options)
}
