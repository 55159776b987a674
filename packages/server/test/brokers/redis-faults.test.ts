import { createRedisBroker } from '../../src/brokers/redis-broker.js'
import { type BrokerFault, brokerFaultSuite } from '../../src/conformance/broker-fault-suite.js'
import { startFaultProxy, startRedis, startRedisCluster } from '../../src/services/index.js'
import { OPTIONS } from './redis-node.js'

/** Lost after at most two of them: within the second that the suite gives. */
const HEARTBEAT_MS = 300
const SWALLOW_MS = 1_000

brokerFaultSuite(
  'redis',
  async () => {
    const service = await startRedis({ isPrivate: true })
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
          broker: proxies[index % proxies.length]?.url ?? '',
          brokerNamespace: 'faults',
          brokerHeartbeatMs: HEARTBEAT_MS,
        }),
      faults,
      end: async () => {
        await Promise.all(proxies.map((proxy) => proxy.stop()))
        await service.stop()
      },
    }
  },
  { faultCount: 24 },
)

brokerFaultSuite(
  'redis cluster',
  async () => {
    const cluster = await startRedisCluster()
    const broker = `redis+cluster://${cluster.urls.map((url) => new URL(url).host).join(',')}`
    return {
      createNode: () =>
        createRedisBroker({ ...OPTIONS, broker, brokerNamespace: 'faults', brokerHeartbeatMs: HEARTBEAT_MS }),
      faults: cluster.nodes.map((node, index) => ({
        name: `master ${index} killed`,
        inject: () => node.kill(),
        end: () => node.restart(),
      })),
      end: () => cluster.stop(),
    }
  },
  { faultCount: 6 },
)
