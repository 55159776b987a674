import { type Service, startNats, startRabbitmq, startRedis, startRedisCluster } from 'webmq-services'
import type { BrokerName } from '../../packages/check/src/playing/schedule.js'

/** What a broker can do, and how a private one is started. */
export interface BrokerRow {
  readonly nodeCount: number
  /** Where the log is, if something is logged; `false`: this broker is played without one. */
  readonly log: 'shared' | 'per-node' | false
  /** Whether its data outlives it. */
  readonly isDurable: boolean
  /** A program of its own; absent where the nodes are all there is. */
  readonly startService?: () => Promise<BrokerService>
}

/** The programs of a broker. */
export interface BrokerService {
  /** Address for `--broker`. */
  readonly url: string
  /** Whether nodes know it by this address only, so that a proxy can stand in between. */
  readonly hasLinks: boolean
  readonly parts: readonly Service[]
  stop(): Promise<void>
}

/** Redis writes what it has acknowledged, so that a restart with its data loses nothing. */
const DURABLE_REDIS = ['--appendonly', 'yes', '--appendfsync', 'always']

export const BROKERS: Readonly<Record<BrokerName, BrokerRow>> = {
  memory: { nodeCount: 1, log: 'per-node', isDurable: false },
  redis: row(() => startRedis({ args: DURABLE_REDIS })),
  'redis-cluster': { ...row(startCluster), log: false },
  nats: row(() => startNats({ isPrivate: true, hasJetStream: true })),
  rabbitmq: row(() => startRabbitmq({ isPrivate: true })),
  mesh: { nodeCount: 3, log: 'per-node', isDurable: false },
}

function row(start: () => Promise<Service | BrokerService>): BrokerRow {
  const startService = async () => {
    const started = await start()
    if ('parts' in started) return started
    return { url: started.url, hasLinks: true, parts: [started], stop: () => started.stop() }
  }
  return { nodeCount: 3, log: 'shared', isDurable: true, startService }
}

/** Its servers tell the nodes their own addresses, past any proxy. */
async function startCluster(): Promise<BrokerService> {
  const cluster = await startRedisCluster({ args: DURABLE_REDIS })
  const hosts = cluster.urls.map((url) => new URL(url).host).join(',')
  return {
    url: `redis+cluster://${hosts}`,
    hasLinks: false,
    parts: cluster.nodes,
    stop: () => cluster.stop(),
  }
}
