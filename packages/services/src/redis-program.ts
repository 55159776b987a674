import { freePort } from './free-port.js'
import { obtainProgram } from './obtain-program.js'
import { ask, pingRedis } from './ping.js'
import { dataFolder, ProgramService, startProgram } from './program-service.js'
import type { ServiceOptions } from './service.js'
import { ServiceError } from './service-error.js'

const START_TIMEOUT_MS = 60_000
const STOP_TIMEOUT_MS = 5_000

/**
 * A private `redis-server` that accepts connections, with arguments made from its port and data folder.
 * @throws {ServiceError} when it is not available, or does not start.
 */
export async function startRedisProgram(
  argsOf: (port: number, folder: string) => readonly string[] | Promise<readonly string[]>,
  { dataParent, version }: Pick<ServiceOptions, 'dataParent' | 'version'> = {},
): Promise<ProgramService> {
  const origin = await obtainProgram('redis', { isPrivate: true, version })
  if (origin.source === 'url' || origin.source === 'container') {
    throw new ServiceError('several Redis that have to reach each other need redis-server on PATH')
  }
  return await startProgram(async () => {
    const port = await freePort()
    const folder = await dataFolder('redis', dataParent)
    return new ProgramService({
      kind: 'redis',
      url: `redis://127.0.0.1:${port}`,
      source: origin.source,
      folder,
      stores: ['appendonlydir', 'appendonly.aof', 'dump.rdb'],
      logFiles: /\.aof$/,
      process: { title: 'redis-server', command: origin.file, args: await argsOf(port, folder) },
      startTimeoutMs: START_TIMEOUT_MS,
      stopTimeoutMs: STOP_TIMEOUT_MS,
      ping: () => pingRedis(port),
    })
  })
}

/** Arguments of a server that keeps data only in memory. */
export function redisArgs(port: number, folder: string): readonly string[] {
  return ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', '']
}

/**
 * Sends one command to a Redis of this machine.
 * @returns its reply as RESP2 has it, the type byte included: `+OK\r\n`; of an array only its beginning
 * @throws {ServiceError} when the reply is an error, or there is none.
 */
export async function redisCommand(port: number, ...args: readonly string[]): Promise<string> {
  const bulks = args.map((arg) => `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`)
  const reply = await ask(port, `*${args.length}\r\n${bulks.join('')}`, isWhole)
  if (reply.startsWith('-')) throw new ServiceError(`redis refused ${args.join(' ')}: ${reply.slice(1).trim()}`)
  return reply
}

/** RESP: a bulk string has a length; all other replies here are one line, or their first line is enough. */
function isWhole(reply: string): boolean {
  const lineEnd = reply.indexOf('\r\n')
  if (lineEnd === -1 || !reply.startsWith('$')) return lineEnd !== -1
  return reply.length >= lineEnd + 2 + Number(reply.slice(1, lineEnd)) + 2
}
