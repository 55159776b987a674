import { freePort } from './free-port.js'
import { redisArgs, redisCommand, startRedisProgram } from './redis-program.js'
import type { Service, ServiceOptions } from './service.js'
import { ServiceError } from './service-error.js'
import { ServiceSet } from './service-set.js'
import { waitFor } from './wait-for.js'

/** A Redis Cluster of masters, each with a share of the slots. */
export class RedisCluster extends ServiceSet {
  /** Each can be killed and restarted. While one is down, the whole cluster is down. */
  readonly nodes: readonly Service[]

  constructor(nodes: readonly Service[]) {
    super(nodes)
    this.nodes = nodes
  }

  /** Of all nodes, in the order of their slots. */
  get urls(): readonly string[] {
    return this.nodes.map(({ url }) => url)
  }
}

const SLOT_COUNT = 16_384
const MIN_MASTERS = 1
const MAX_MASTERS = 16
const JOIN_TIMEOUT_MS = 20_000
/** How long a node must be silent for the others to declare it failed. */
const NODE_TIMEOUT_MS = 2_000

/** Settings of a {@link RedisCluster}. */
export interface RedisClusterOptions extends Pick<ServiceOptions, 'dataParent' | 'version'> {
  /** 1 to 16; default 3. */
  readonly masters?: number
  /** More arguments of each `redis-server`, as in {@link RedisOptions}. */
  readonly args?: readonly string[]
}

/**
 * A private Redis Cluster that accepts commands, without replicas. Needs Redis 7.
 * @throws {ServiceError} when Redis is not available, or the nodes do not find each other.
 */
export async function startRedisCluster(options: RedisClusterOptions = {}): Promise<RedisCluster> {
  const { masters = 3, args = [], ...place } = options
  if (!(masters >= MIN_MASTERS && masters <= MAX_MASTERS)) {
    throw new ServiceError(`a cluster has ${MIN_MASTERS} to ${MAX_MASTERS} masters, not ${masters}`)
  }
  const starts = await Promise.allSettled(Array.from({ length: masters }, () => startNode(args, place)))
  const cluster = new RedisCluster(starts.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : [])))
  try {
    for (const start of starts) if (start.status === 'rejected') throw start.reason
    await join(cluster.nodes.map(({ url }) => Number(new URL(url).port)))
  } catch (error) {
    await cluster.stop()
    throw error
  }
  return cluster
}

async function startNode(args: readonly string[], place: RedisClusterOptions): Promise<Service> {
  return await startRedisProgram(
    async (port, folder) => [
      ...redisArgs(port, folder),
      ...['--cluster-enabled', 'yes', '--cluster-port', String(await freePort())],
      ...['--cluster-node-timeout', String(NODE_TIMEOUT_MS)],
      ...args,
    ],
    place,
  )
}

async function join(ports: readonly number[]): Promise<void> {
  const [firstPort, ...otherPorts] = ports
  if (firstPort === undefined) throw new ServiceError('a cluster without nodes')
  for (const [index, port] of ports.entries()) {
    const slots = [index, index + 1].map((part) => Math.floor((part * SLOT_COUNT) / ports.length))
    const [from = 0, to = SLOT_COUNT] = slots
    await redisCommand(port, 'CLUSTER', 'ADDSLOTSRANGE', String(from), String(to - 1))
    // Nodes with equal epochs must first settle which is higher.
    await redisCommand(port, 'CLUSTER', 'SET-CONFIG-EPOCH', String(index + 1))
  }
  for (const port of otherPorts) {
    const bus = /cluster-port\r\n\$\d+\r\n(\d+)/.exec(await redisCommand(port, 'CONFIG', 'GET', 'cluster-port'))?.[1]
    if (bus === undefined) throw new ServiceError(`the Redis on port ${port} does not tell its cluster port`)
    await redisCommand(firstPort, 'CLUSTER', 'MEET', '127.0.0.1', String(port), bus)
  }
  await waitFor('the nodes of the cluster to find each other', JOIN_TIMEOUT_MS, async () => {
    const states = await Promise.all(ports.map((port) => redisCommand(port, 'CLUSTER', 'INFO')))
    const isWhole = (state: string) =>
      state.includes('cluster_state:ok') && state.includes(`cluster_known_nodes:${ports.length}\r`)
    return states.every(isWhole)
  })
}
