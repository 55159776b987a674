import { freePort } from './free-port.js'
import { GivenService } from './given-service.js'
import { obtainProgram } from './obtain-program.js'
import { pingRedis } from './ping.js'
import { dataFolder, ProgramService, startProgram } from './program-service.js'
import type { Service, ServiceOptions } from './service.js'

/** Settings of a Redis. */
export interface RedisOptions extends ServiceOptions {
  /**
   * More arguments of `redis-server`: `['--maxmemory', '64mb']`. By default nothing is written to disk, so a restart
   * forgets everything; `['--appendonly', 'yes', '--appendfsync', 'always']` keeps what was acknowledged.
   */
  readonly args?: readonly string[]
}

const START_TIMEOUT_MS = 15_000
const STOP_TIMEOUT_MS = 5_000

/**
 * A Redis that takes connections.
 * @throws {WebMQError} `E_SERVICE_FAILED` when there is none to be had, or it does not start.
 */
export async function startRedis({ args = [], isPrivate = args.length > 0 }: RedisOptions = {}): Promise<Service> {
  const origin = await obtainProgram('redis', { isPrivate })
  if (origin.source === 'url') return new GivenService('redis', origin.url)
  return await startProgram(() => redisProgram(origin, () => args))
}

/** A Redis of the arguments that follow from its port and folder, not started yet. */
export async function redisProgram(
  { file, source }: { readonly file: string; readonly source: 'binary' | 'package' },
  argsOf: (port: number, folder: string) => readonly string[] | Promise<readonly string[]>,
): Promise<ProgramService & { readonly port: number }> {
  const port = await freePort()
  const folder = await dataFolder('redis')
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', '', '--daemonize', 'no']
  const service = new ProgramService({
    kind: 'redis',
    url: `redis://127.0.0.1:${port}`,
    source,
    folder,
    process: { title: 'redis-server', command: file, args: [...args, ...(await argsOf(port, folder))] },
    startTimeoutMs: START_TIMEOUT_MS,
    stopTimeoutMs: STOP_TIMEOUT_MS,
    ping: () => pingRedis(port),
  })
  return Object.assign(service, { port })
}
