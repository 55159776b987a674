import { Redis } from 'ioredis'
import { createRedisBroker } from 'webmq-broker-redis'
import { type BrokerFault, type BrokerFaultSystem, brokerFaultSuite, historyOf, retaining } from 'webmq-conformance'
import { startFaultProxy, startRedis, startRedisCluster } from 'webmq-services'
import type { HistoryOptions } from '../../src/kernel/ports/history-rules.js'
import { faultCount } from './fault-count.js'
import { OPTIONS } from './redis-node.js'

/** Lost after at most two of them: within the second that the suite gives. */
const HEARTBEAT_MS = 300
const SWALLOW_MS = 1_000

const KEPT = ['--appendonly', 'yes', '--appendfsync', 'always']
const HISTORY = historyOf('#=1000')

/** What somebody does to the data of Redis. */
interface Loss {
  readonly name: string
  readonly command: readonly [string, ...string[]]
}

function faultOf({ name, command: [command, ...args] }: Loss, url: string): BrokerFault {
  return {
    name,
    inject: async () => {
      const redis = new Redis(url)
      await redis.call(command, ...args)
      await redis.quit()
    },
    end: () => Promise.resolve(),
  }
}

/** Nodes on one Redis, each by a proxy of its own. */
async function oneRedis(
  args: readonly string[],
  history: HistoryOptions,
  losses: readonly Loss[] = [],
): Promise<BrokerFaultSystem> {
  const service = await startRedis({ isPrivate: true, args })
  const proxies = await Promise.all([0, 1, 2].map(() => startFaultProxy(service)))
  const [first, second, third] = proxies
  if (first === undefined || second === undefined || third === undefined) throw new Error('no proxies')
  const heal = () => Promise.all(proxies.map((proxy) => proxy.heal()))
  const faults: BrokerFault[] = [
    { name: 'killed and restarted', inject: () => service.kill(), end: () => service.restart() },
    { name: 'one node cut off', inject: () => first.cut(), end: () => first.heal() },
    { name: 'one node half-open', inject: () => second.swallow(), end: () => second.heal(), holdMs: SWALLOW_MS },
    {
      name: 'all nodes cut off',
      inject: () => Promise.all(proxies.map((proxy) => proxy.cut())).then(),
      end: () => heal().then(),
    },
    {
      name: 'all nodes half-open',
      inject: () => Promise.all(proxies.map((proxy) => proxy.swallow())).then(),
      end: () => heal().then(),
      holdMs: SWALLOW_MS,
    },
    { name: 'restarted in an orderly way', inject: () => service.restart(), end: () => Promise.resolve() },
  ]
  return {
    createNode: (index) =>
      createRedisBroker({
        ...OPTIONS,
        ...history,
        broker: proxies[index % proxies.length]?.url ?? '',
        brokerNamespace: 'faults',
        brokerHeartbeatMs: HEARTBEAT_MS,
      }),
    faults: [...faults, ...losses.map((loss) => faultOf(loss, service.url))],
    end: async () => {
      await Promise.all(proxies.map((proxy) => proxy.stop()))
      await service.stop()
    },
  }
}

brokerFaultSuite('redis', () => oneRedis([], historyOf()), { ...faultCount(24) })

brokerFaultSuite('redis with history that it keeps', () => oneRedis(KEPT, retaining(HISTORY, '#')), {
  ...faultCount(24),
  isLogKept: true,
})

brokerFaultSuite(
  'redis with history that it loses',
  () =>
    oneRedis([], HISTORY, [
      { name: 'emptied', command: ['FLUSHALL'] },
      { name: 'log deleted', command: ['DEL', 'faults/log', 'faults/log/state'] },
    ]),
  { ...faultCount(16) },
)

/** Nodes on a cluster, whose masters die one after the other. */
async function oneCluster(args: readonly string[], history: HistoryOptions): Promise<BrokerFaultSystem> {
  const cluster = await startRedisCluster({ args })
  const broker = `redis+cluster://${cluster.urls.map((url) => new URL(url).host).join(',')}`
  return {
    createNode: () =>
      createRedisBroker({
        ...OPTIONS,
        ...history,
        broker,
        brokerNamespace: 'faults',
        brokerHeartbeatMs: HEARTBEAT_MS,
      }),
    faults: cluster.nodes.map((node, index) => ({
      name: `master ${index} killed`,
      inject: () => node.kill(),
      end: () => node.restart(),
    })),
    end: () => cluster.stop(),
  }
}

brokerFaultSuite('redis cluster', () => oneCluster([], historyOf()), { ...faultCount(6) })

brokerFaultSuite('redis cluster with history', () => oneCluster(KEPT, HISTORY), { ...faultCount(6), isLogKept: true })
