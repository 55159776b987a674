import type { Broker } from '../../ports/broker.js'
import { RemoteBroker, type RemoteBrokerOptions } from '../remote/broker.js'
import { RabbitmqDriver } from './driver.js'
import type { RabbitmqLimits } from './limits.js'

/** Options of the RabbitMQ broker; as in {@link ServerOptions}. */
export interface RabbitmqBrokerOptions extends RemoteBrokerOptions {
  /** `amqp[s]://user:password@host:port,…/vhost`. */
  readonly broker: string
  /** Limits other than the defaults. */
  readonly rabbitmqLimits?: Partial<RabbitmqLimits>
}

/**
 * Creates a broker on RabbitMQ; `start` it.
 * @throws {WebMQError} `E_OPTION_INVALID` for an invalid address.
 */
export function createRabbitmqBroker(options: RabbitmqBrokerOptions): Broker {
  return new RemoteBroker(new RabbitmqDriver(options.broker, options, options.rabbitmqLimits), options)
}
