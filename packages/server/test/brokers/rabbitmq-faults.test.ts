import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { brokerFaultSuite, historyOf } from 'webmq-conformance'
import { type FaultProxy, type RabbitmqService, startFaultProxy, startRabbitmq } from 'webmq-services'
import { createRabbitmqBroker } from '../../src/brokers/rabbitmq/broker.js'
import { startBackend } from './amqp-backend.js'
import { newNamespace, nodeOptions, publishText, startNode } from './rabbitmq-node.js'

const START_TIMEOUT_MS = 100_000
let service: RabbitmqService

beforeAll(async () => {
  service = await startRabbitmq({ isPrivate: true })
}, START_TIMEOUT_MS)

afterAll(() => service?.stop(), START_TIMEOUT_MS)

describe('rabbitmq that is short of memory', () => {
  it('is blocked: publishes wait, what others publish is delivered, and nothing is dropped', async () => {
    const namespace = newNamespace()
    const { broker, received, events } = await startNode(
      nodeOptions(service.url, namespace, { brokerTimeoutMs: 60_000, brokerHeartbeatMs: 500 }),
    )
    await broker.bind('#')
    const channel = await startBackend(service.url)
    const { queue } = await channel.assertQueue('', { exclusive: true })
    await service.ctl('set_vm_memory_high_watermark', '0.0000001')
    // The broker tells a connection when it next publishes.
    const publishes = [publishText(broker, 'a', '0')]
    await vi.waitFor(() => expect(events.at(-1)).toMatch(/^blocked: /), { timeout: 10_000 })
    for (let number = 1; number < 100; number++) publishes.push(publishText(broker, 'a', `${number}`))
    // Reads go on, and a bind does: they are on a connection that does not publish.
    await broker.bind('another')
    await channel.checkQueue(queue)
    expect(broker.stats()).toMatchObject({ acceptedCount: 0, pendingCount: 100 })
    await service.ctl('set_vm_memory_high_watermark', '0.6')
    await Promise.all(publishes)
    await vi.waitFor(() => expect(received).toHaveLength(100))
    expect(received.map(({ text }) => Number(text))).toEqual(Array.from({ length: 100 }, (_, number) => number))
    expect(events).toEqual(['up', expect.stringMatching(/^blocked: low on memory/), 'up'])
    expect(broker.stats()).toMatchObject({ acceptedCount: 100, rejectedCount: 0, lostCount: 0 })
  }, 60_000)
})

describe('rabbitmq and its operators', () => {
  const nodeQueues = async (namespace: string) =>
    (await service.ctl('list_queues', 'name'))
      .split('\n')
      .filter((name) => name.startsWith(namespace) && !name.endsWith('.overflow'))

  it.each([
    [
      'deletes the queue of a node',
      async (namespace: string) => {
        const [queue = ''] = await nodeQueues(namespace)
        const find = `{ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"/">>, queue, <<"${queue}">>))`
        await service.ctl('eval', `${find}, rabbit_amqqueue:delete(Q, false, false, <<"test">>).`)
      },
    ],
    ['closes all connections', async () => void (await service.ctl('close_all_connections', 'maintenance'))],
    [
      'deletes the exchange',
      async (namespace: string) => {
        await service.ctl(
          'eval',
          `rabbit_exchange:delete(rabbit_misc:r(<<"/">>, exchange, <<"${namespace}">>), false, <<"test">>).`,
        )
      },
    ],
  ])(
    'comes back with a gap when somebody %s',
    async (_, act) => {
      const namespace = newNamespace()
      const { broker, received, events } = await startNode(
        nodeOptions(service.url, namespace, { brokerHeartbeatMs: 400 }),
      )
      await broker.bind('a.*')
      await act(namespace)
      await vi.waitFor(() => expect(events.at(-1)).toBe('up'), { timeout: 10_000 })
      await vi.waitFor(() => expect(events).toContain('gap broker-lost'), { timeout: 10_000 })
      expect(events.slice(0, 2)).toEqual(['up', expect.stringMatching(/^down: broker is unreachable: .+/)])
      await publishText(broker, 'a.b', '1')
      await vi.waitFor(() => expect(received).toHaveLength(1))
    },
    40_000,
  )
})

describe('rabbitmq and a node that does not keep up', () => {
  it('tells a gap when its queue was full and has dropped messages', async () => {
    const namespace = newNamespace()
    await using proxy = await startFaultProxy(service)
    const node = await startNode(nodeOptions(proxy.url, namespace))
    await node.broker.bind('#')
    // As if it had been away for long: what holds for 250,000 messages is told sooner.
    await service.ctl('set_policy', 'few', `^${namespace}`, '{"max-length":100}', '--apply-to', 'queues')
    await proxy.latency(100)
    const channel = await startBackend(service.url)
    for (let number = 0; number < 5_000; number++) channel.publish(namespace, 'a', Buffer.from(`${number}`))
    await vi.waitFor(() => expect(node.events).toContain('gap broker-lost'), { timeout: 20_000 })
    await vi.waitFor(() => expect(node.events.at(-1)).toBe('up'), { timeout: 10_000 })
    expect(node.events[1]).toMatch(/^down: .*did not keep up/)
    // None came after one that was dropped, until the gap was told.
    const numbers = node.received.map(({ text }) => Number(text))
    expect(numbers).toEqual(Array.from({ length: numbers.length }, (_, number) => number))
    await proxy.latency(0)
    channel.publish(namespace, 'b', Buffer.from('"after"'))
    await vi.waitFor(() => expect(node.received.at(-1)?.text).toBe('"after"'), { timeout: 5_000 })
  }, 60_000)
})

/** Three nodes, each behind a proxy of its own. */
async function faultySystem(namespace: string, ...rules: readonly string[]) {
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
          rabbitmqLimits: { closeTimeoutMs: 400 },
          ...historyOf(...rules),
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

brokerFaultSuite('rabbitmq', () => faultySystem(newNamespace()), { faultCount: 21 })

// Not killed at first: RabbitMQ 3.10 writes down that it has streams half a second after the first was declared. One that is killed before that never
// finds it again ("home node is down or inaccessible").
brokerFaultSuite(
  'rabbitmq with a log',
  async () => {
    const { faults, ...system } = await faultySystem(newNamespace(), '#=1000')
    return { ...system, faults: [...faults.slice(1), ...faults.slice(0, 1)] }
  },
  { faultCount: 14, isLogKept: true },
)

brokerFaultSuite(
  'rabbitmq whose log is deleted',
  async () => {
    const namespace = newNamespace()
    const system = await faultySystem(namespace, '#=1000')
    const find = `{ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"/">>, queue, <<"${namespace}.log">>))`
    const deletion = {
      name: 'log deleted by an operator',
      inject: async () =>
        void (await service.ctl('eval', `${find}, rabbit_stream_queue:delete(Q, false, false, <<"test">>).`)),
      end: async () => undefined,
    }
    return { ...system, faults: [system.faults.slice(1, 2), deletion, system.faults.slice(0, 1)].flat() }
  },
  { faultCount: 6 },
)
