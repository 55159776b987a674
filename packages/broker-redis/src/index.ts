import { type AddressedBrokerOptions, RemoteBroker } from 'webmq-server/brokers'
import type { Broker } from 'webmq-server/ports'
import { RedisDriver } from './driver.js'

export { readRedisSettings } from './settings.js'

/**
 * Publishes and subscribes; a stream is the log.
 * @throws {WebMQError} `E_OPTION_INVALID` for the address; `E_BROKER_MISSING` when the server has another version of the
 *   contract.
 */
export function createRedisBroker(options: AddressedBrokerOptions): Broker {
  return new RemoteBroker(new RedisDriver(options.broker, options), options)
}
