import { loadLibrary } from '../../base/load-library.js'
import type { Broker } from '../../ports/broker.js'
import { RemoteBroker } from '../remote/broker.js'
import type { RemoteBrokerOptions } from '../remote/options.js'
import type { RabbitmqLimits } from './driver.js'

/** Options of the RabbitMQ broker; as in {@link ServerOptions}. */
export interface RabbitmqBrokerOptions extends RemoteBrokerOptions {
  /** `amqp[s]://user:password@host:port,…/vhost`. */
  readonly broker: string
  readonly rabbitmqLimits?: Partial<RabbitmqLimits>
}

/**
 * Creates a broker on RabbitMQ; `start` it.
 * @throws {WebMQError} `E_OPTION_INVALID` for the address; `E_BROKER_MISSING` when the library is not installed.
 */
export async function createRabbitmqBroker(options: RabbitmqBrokerOptions): Promise<Broker> {
  await loadLibrary('amqplib', 'the broker amqp://…', () => import('amqplib'))
  const { RabbitmqDriver } = await import('./driver.js')
  return new RemoteBroker(new RabbitmqDriver(options.broker, options, options.rabbitmqLimits), options)
}
