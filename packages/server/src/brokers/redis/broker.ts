import { loadLibrary } from '../../base/load-library.js'
import type { Broker } from '../../ports/broker.js'
import { RemoteBroker } from '../remote/broker.js'
import type { RemoteBrokerOptions } from '../remote/options.js'

/** Options of the broker; as in {@link ServerOptions}. */
export interface RedisBrokerOptions extends RemoteBrokerOptions {
  /** `redis://…`, `redis+sentinel://…` or `redis+cluster://…`, or `rediss` for TLS; see {@link parseRedisAddress}. */
  readonly broker: string
}

/**
 * Creates a broker on Redis; `start` it.
 * @throws {WebMQError} `E_OPTION_INVALID` for the address; `E_BROKER_MISSING` when the library is not installed.
 */
export async function createRedisBroker(options: RedisBrokerOptions): Promise<Broker> {
  await loadLibrary('ioredis', 'the broker redis://…', () => import('ioredis'))
  const { RedisDriver } = await import('./driver.js')
  return new RemoteBroker(new RedisDriver(options.broker, options), options)
}
