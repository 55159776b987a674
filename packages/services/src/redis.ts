import { startContainer } from './container/service.js'
import { GivenService } from './given-service.js'
import { obtainProgram } from './obtain-program.js'
import { pingRedis } from './ping.js'
import { redisArgs, startRedisProgram } from './redis-program.js'
import type { Service, ServiceOptions } from './service.js'

/** Settings of a Redis. */
export interface RedisOptions extends ServiceOptions {
  /**
   * More arguments of `redis-server`: `['--maxmemory', '64mb']`. By default nothing is written to disk, so a restart
   * forgets everything; `['--appendonly', 'yes', '--appendfsync', 'always']` keeps what was acknowledged.
   */
  readonly args?: readonly string[]
}

/**
 * A Redis that accepts connections.
 * @throws {ServiceError} when it is not available, or does not start.
 */
export async function startRedis(options: RedisOptions = {}): Promise<Service> {
  const { args = [], dataParent, version } = options
  const { isPrivate = args.length > 0 || version !== undefined } = options
  const origin = await obtainProgram('redis', { isPrivate, version })
  if (origin.source === 'url') return new GivenService('redis', origin.url)
  if (origin.source === 'container') {
    return await startContainer({
      kind: 'redis',
      image: origin.image,
      port: 6379,
      command: [origin.image.startsWith('valkey') ? 'valkey-server' : 'redis-server', '--save', '', ...args],
      urlOf: (port) => `redis://127.0.0.1:${port}`,
      ping: pingRedis,
    })
  }
  return await startRedisProgram((port, folder) => [...redisArgs(port, folder), ...args], { dataParent, version })
}
