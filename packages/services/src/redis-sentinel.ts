import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { redisArgs, redisCommand, startRedisProgram } from './redis-program.js'
import type { Service } from './service.js'
import { ServiceSet } from './service-set.js'
import { waitFor } from './wait-for.js'

/** A master, its replica, and a sentinel that makes the replica the master when the master dies. */
export class RedisSentinel extends ServiceSet {
  /** The sentinel's name for the pair. */
  readonly masterName = MASTER_NAME
  readonly master: Service
  readonly replica: Service
  readonly sentinel: Service

  constructor(master: Service, replica: Service, sentinel: Service) {
    super([master, replica, sentinel])
    this.master = master
    this.replica = replica
    this.sentinel = sentinel
  }
}

const MASTER_NAME = 'webmq'
const JOIN_TIMEOUT_MS = 20_000
/** How long a master must be silent to be replaced. */
const DOWN_AFTER_MS = 1_000
const FAILOVER_TIMEOUT_MS = 5_000

/**
 * A private pair of Redis under one sentinel, in step and ready to fail over.
 * @throws {ServiceError} when Redis is not available, or they do not find each other.
 */
export async function startRedisSentinel(): Promise<RedisSentinel> {
  const started: Service[] = []
  const start = async (argsOf: Parameters<typeof startRedisProgram>[0]) => {
    const service = await startRedisProgram(argsOf)
    started.push(service)
    return service
  }
  try {
    const master = await start((port, folder) => [...redisArgs(port, folder), '--repl-diskless-sync-delay', '0'])
    const masterPort = portOf(master)
    const replica = await start((port, folder) => [...redisArgs(port, folder), '--replicaof', '127.0.0.1', masterPort])
    await waitFor('the replica to be in step', JOIN_TIMEOUT_MS, async () =>
      (await redisCommand(Number(portOf(replica)), 'INFO', 'replication')).includes('master_link_status:up'),
    )
    const sentinel = await start((port, folder) => sentinelArgs(port, folder, masterPort))
    await waitFor('the sentinel to know the replica', JOIN_TIMEOUT_MS, async () =>
      (await redisCommand(Number(portOf(sentinel)), 'SENTINEL', 'REPLICAS', MASTER_NAME)).startsWith('*1\r\n'),
    )
    return new RedisSentinel(master, replica, sentinel)
  } catch (error) {
    await Promise.all(started.map((service) => service.stop()))
    throw error
  }
}

/** A sentinel writes what it learns into its configuration, so it needs a file. */
async function sentinelArgs(port: number, folder: string, masterPort: string): Promise<readonly string[]> {
  const file = path.join(folder, 'sentinel.conf')
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `dir ${folder}`,
    `sentinel monitor ${MASTER_NAME} 127.0.0.1 ${masterPort} 1`,
    `sentinel down-after-milliseconds ${MASTER_NAME} ${DOWN_AFTER_MS}`,
    `sentinel failover-timeout ${MASTER_NAME} ${FAILOVER_TIMEOUT_MS}`,
  ]
  await writeFile(file, `${lines.join('\n')}\n`)
  return [file, '--sentinel']
}

function portOf({ url }: Service): string {
  return new URL(url).port
}
