import * as core from '@nats-io/transport-node'
import { type AddressedBrokerOptions, hasHistory, RemoteBroker } from 'webmq-server/brokers'
import type { Broker } from 'webmq-server/ports'
import { parseNatsAddress } from './address.js'
import { NatsDriver } from './driver.js'

/**
 * Core NATS delivers messages to current subscribers; JetStream stores the messages of logged keys.
 * @throws {WebMQError} `E_OPTION_INVALID` for the address; `E_BROKER_MISSING` when the server has another version of the
 *   contract.
 */
export async function createNatsBroker(options: AddressedBrokerOptions): Promise<Broker> {
  const address = parseNatsAddress(options.broker)
  const jetStream = hasHistory(options) ? await import('@nats-io/jetstream') : undefined
  return new RemoteBroker(new NatsDriver(address, options, core, jetStream), options)
}
