import { type AddressedBrokerOptions, RemoteBroker } from 'webmq-server/brokers'
import type { Broker } from 'webmq-server/ports'
import { RabbitmqDriver, type RabbitmqLimits } from './driver.js'

export interface RabbitmqBrokerOptions extends AddressedBrokerOptions {
  readonly rabbitmqLimits?: Partial<RabbitmqLimits>
}

/**
 * A topic exchange, and a queue of each node; a stream of RabbitMQ is the log.
 * @throws {WebMQError} `E_OPTION_INVALID` for the address; `E_BROKER_MISSING` when the server has another version of the
 *   contract.
 */
export function createRabbitmqBroker(options: RabbitmqBrokerOptions): Broker {
  return new RemoteBroker(new RabbitmqDriver(options.broker, options, options.rabbitmqLimits), options)
}
