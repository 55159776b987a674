import { loadLibrary } from '../../kernel/base/load-library.js'
import type { Broker } from '../../kernel/ports/broker.js'
import { hasHistory } from './log/history-log.js'
import type { RabbitmqLimits } from './rabbitmq/driver.js'
import { RemoteBroker } from './remote/broker.js'
import type { AddressedBrokerOptions } from './remote/options.js'

export type { AddressedBrokerOptions }

/*
 * Each of these loads its library, and nothing of the others.
 * @throws {WebMQError} `E_OPTION_INVALID` for the address; `E_BROKER_MISSING` when the library is not installed.
 */

export interface RabbitmqBrokerOptions extends AddressedBrokerOptions {
  readonly rabbitmqLimits?: Partial<RabbitmqLimits>
}

export async function createRedisBroker(options: AddressedBrokerOptions): Promise<Broker> {
  await loadLibrary('ioredis', 'the broker redis://…', () => import('ioredis'))
  const { RedisDriver } = await import('./redis/driver.js')
  return new RemoteBroker(new RedisDriver(options.broker, options), options)
}

export async function createRabbitmqBroker(options: RabbitmqBrokerOptions): Promise<Broker> {
  await loadLibrary('amqplib', 'the broker amqp://…', () => import('amqplib'))
  const { RabbitmqDriver } = await import('./rabbitmq/driver.js')
  return new RemoteBroker(new RabbitmqDriver(options.broker, options, options.rabbitmqLimits), options)
}

/** Core NATS delivers messages to current subscribers; JetStream stores the messages of logged keys. */
export async function createNatsBroker(options: AddressedBrokerOptions): Promise<Broker> {
  const [{ parseNatsAddress }, { NatsDriver }] = await Promise.all([
    import('./nats/address.js'),
    import('./nats/driver.js'),
  ])
  const address = parseNatsAddress(options.broker)
  const load = () => import('@nats-io/transport-node')
  const core = await loadLibrary('@nats-io/transport-node', 'the broker nats://…', load)
  const loadJetStream = () =>
    loadLibrary('@nats-io/jetstream', 'history with the broker nats://…', () => import('@nats-io/jetstream'))
  const jetStream = hasHistory(options) ? await loadJetStream() : undefined
  return new RemoteBroker(new NatsDriver(address, options, core, jetStream), options)
}
