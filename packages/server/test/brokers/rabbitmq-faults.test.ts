import { afterAll, beforeAll } from 'vitest'
import { createRabbitmqBroker } from 'webmq-broker-rabbitmq'
import { brokerFaultSuite, historyOf, retaining } from 'webmq-conformance'
import { type FaultProxy, type RabbitmqService, startFaultProxy, startRabbitmq } from 'webmq-services'
import { inTurn } from '../../../../test/in-turn.js'
import { faultCount } from './fault-count.js'
import { newNamespace, nodeOptions } from './rabbitmq-node.js'

let service: RabbitmqService

beforeAll(async () => {
  service = await startRabbitmq({ isPrivate: true })
})

afterAll(() => service?.stop())

/** Three nodes, each behind a proxy of its own. */
async function faultySystem(namespace: string, history = historyOf()) {
  const proxies = await Promise.all([0, 1, 2].map(() => startFaultProxy(service)))
  const proxyAt = (index: number): FaultProxy => {
    const proxy = proxies[index % proxies.length]
    if (proxy === undefined) throw new Error('no proxies')
    return proxy
  }
  const all = (act: (proxy: FaultProxy) => Promise<void>) => async () => void (await Promise.all(proxies.map(act)))
  const watermark = (share: string) => async () => void (await service.ctl('set_vm_memory_high_watermark', share))
  const closeAll = () => service.ctl('close_all_connections', 'a fault of the test')
  return {
    createNode: (index: number) =>
      createRabbitmqBroker(
        nodeOptions(proxyAt(index).url, namespace, {
          brokerHeartbeatMs: 400,
          ...history,
        }),
      ),
    faults: [
      { name: 'killed and restarted', inject: () => service.kill(), end: () => service.restart() },
      { name: 'all nodes cut off', inject: all((proxy) => proxy.cut()), end: all((proxy) => proxy.heal()) },
      { name: 'one node half-open', inject: () => proxyAt(0).swallow(), end: () => proxyAt(0).heal(), holdMs: 1_500 },
      { name: 'blocked', inject: watermark('0.0000001'), end: watermark('0.6') },
      { name: 'one node cut off', inject: () => proxyAt(1).cut(), end: () => proxyAt(1).heal() },
      {
        name: 'connections closed by an operator',
        inject: async () => void (await closeAll()),
        end: async () => undefined,
      },
      { name: 'all nodes half-open', inject: all((proxy) => proxy.swallow()), end: all((proxy) => proxy.heal()) },
    ],
    end: async () => void (await Promise.all(proxies.map((proxy) => proxy.stop()))),
  }
}

const plain = () => brokerFaultSuite('rabbitmq', () => faultySystem(newNamespace()), { ...faultCount(21) })

// Not killed at first: RabbitMQ 3.10 writes down that it has streams half a second after the first was declared. One that is killed before that never
// finds it again ("home node is down or inaccessible").
const logged = () =>
  brokerFaultSuite(
    'rabbitmq with a log',
    async () => {
      const { faults, ...system } = await faultySystem(newNamespace(), retaining(historyOf('#=1000'), '#'))
      return { ...system, faults: [...faults.slice(1), ...faults.slice(0, 1)] }
    },
    { ...faultCount(14), isLogKept: true },
  )

const deleted = () =>
  brokerFaultSuite(
    'rabbitmq whose log is deleted',
    async () => {
      const namespace = newNamespace()
      const system = await faultySystem(namespace, historyOf('#=1000'))
      const find = `{ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"/">>, queue, <<"${namespace}.log">>))`
      const deletion = {
        name: 'log deleted by an operator',
        inject: async () =>
          void (await service.ctl('eval', `${find}, rabbit_stream_queue:delete(Q, false, false, <<"test">>).`)),
        end: async () => undefined,
      }
      return { ...system, faults: [system.faults.slice(1, 2), deletion, system.faults.slice(0, 1)].flat() }
    },
    { ...faultCount(6) },
  )

for (const play of inTurn([plain, logged, deleted])) play()
