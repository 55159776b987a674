import type { Broker } from '../../ports/broker.js'
import { hasHistory } from '../log/history-log.js'
import { RemoteBroker } from '../remote/broker.js'
import type { RemoteBrokerOptions } from '../remote/options.js'
import { parseNatsAddress } from './address.js'
import { NatsDriver } from './driver.js'
import { loadJetStream, loadNats } from './library.js'

/** Options of a broker on NATS; as in {@link ServerOptions}. */
export interface NatsBrokerOptions extends RemoteBrokerOptions {
  /** `nats://…` or `tls://…`. */
  readonly broker: string
}

/**
 * A broker on NATS. Core NATS delivers messages to current subscribers; JetStream stores the messages of logged keys.
 * @throws {WebMQError} `E_OPTION_INVALID` for the address; `E_BROKER_MISSING` when the library is not installed.
 */
export async function createNatsBroker(options: NatsBrokerOptions): Promise<Broker> {
  const address = parseNatsAddress(options.broker)
  const core = await loadNats()
  const jetStream = hasHistory(options) ? await loadJetStream() : undefined
  return new RemoteBroker(new NatsDriver(address, options, core, jetStream), options)
}
