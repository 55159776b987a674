import type { Broker } from '../../ports/broker.js'
import { RemoteBroker, type RemoteBrokerOptions } from '../remote/broker.js'
import { RedisDriver } from './driver.js'

/** Options of the broker; as in {@link ServerOptions}. */
export interface RedisBrokerOptions extends RemoteBrokerOptions {
  /** `redis://…`, `redis+sentinel://…` or `redis+cluster://…`, or `rediss` for TLS; see {@link parseRedisAddress}. */
  readonly broker: string
}

/** Creates a broker on Redis; `start` it. */
export function createRedisBroker(options: RedisBrokerOptions): Broker {
  return new RemoteBroker(new RedisDriver(options.broker, options), options)
}
