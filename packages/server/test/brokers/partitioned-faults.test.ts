import { type BrokerFault, brokerFaultSuite, type CommonBrokerOptions, historyOf } from 'webmq-conformance'
import { type Service, sharedService, startFaultProxy, startNats, startRedis } from 'webmq-services'
import { createNatsBroker } from '../../src/brokers/nats/broker.js'
import { createRabbitmqBroker } from '../../src/brokers/rabbitmq/broker.js'
import { createRedisBroker } from '../../src/brokers/redis/broker.js'
import type { Broker } from '../../src/ports/broker.js'
import { createPartitioned, freshNamespace } from './partitioned-node.js'

/** A broker that can be lost. */
interface Lossy {
  readonly url: string
  readonly fault: BrokerFault
  end(): Promise<unknown>
}

/** A broker, and an adapter for it. */
interface Row {
  readonly name: string
  start(): Promise<Lossy>
  create(options: CommonBrokerOptions & { readonly broker: string }): Promise<Broker>
}

const ROWS: readonly Row[] = [
  {
    name: 'redis',
    start: async () =>
      killable(await startRedis({ isPrivate: true, args: ['--appendonly', 'yes', '--appendfsync', 'always'] })),
    create: createRedisBroker,
  },
  {
    name: 'nats',
    start: async () => killable(await startNats({ isPrivate: true, hasJetStream: true })),
    create: createNatsBroker,
  },
  // It takes half a minute to start again: the tests of its adapter kill it.
  { name: 'rabbitmq', start: async () => cuttable(await sharedService('rabbitmq')), create: createRabbitmqBroker },
]

function killable(service: Service): Lossy {
  return {
    url: service.url,
    fault: { name: 'killed and restarted', inject: () => service.kill(), end: () => service.restart() },
    end: () => service.stop(),
  }
}

async function cuttable(service: Pick<Service, 'url'>): Promise<Lossy> {
  const proxy = await startFaultProxy(service)
  const fault = { name: 'all nodes cut off', inject: () => proxy.cut(), end: () => proxy.heal() }
  return { url: proxy.url, fault, end: () => proxy.stop() }
}

// The nodes listen with `load.*`, with the four keys one by one, and with `#`. Two words tell the keys apart, so the four
// have several partitions. Each node has listens on one of them and on all.
for (const { name, start, create } of ROWS) {
  brokerFaultSuite(
    `${name} with partitions`,
    async () => {
      const { url, fault, end } = await start()
      const brokerNamespace = freshNamespace()
      return {
        createNode: () =>
          createPartitioned(
            brokerNamespace,
            historyOf('#=1000'),
            (options) => create({ ...options, broker: url, brokerHeartbeatMs: 300 }),
            2,
          ),
        faults: [fault],
        end: async () => void (await end()),
      }
    },
    { faultCount: 1, isLogKept: true },
  )
}
