import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type RabbitmqService, startFaultProxy, startRabbitmq } from 'webmq-services'
import { PREFETCH_COUNT } from '../../../broker-rabbitmq/src/connection.js'
import { startBackend } from './amqp-backend.js'
import { newNamespace, nodeOptions, publishText, startNode } from './rabbitmq-node.js'

/** The broker sends 1,000 messages ahead of their acknowledgements: this is 72 s of them, longer than rabbitmqctl takes on a busy machine. */
const BACKLOG_COUNT = 60_000
const LATENCY_MS = 600
let service: RabbitmqService

beforeAll(async () => {
  service = await startRabbitmq({ isPrivate: true })
})

afterAll(() => service?.stop())

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
    // Its marker may come only when there is memory again.
    await broker.bind('first')
    // The broker tells a connection when it next publishes.
    const publishes = [publishText(broker, 'a', '0')]
    await vi.waitFor(() => expect(events.at(-1)).toMatch(/^blocked: /))
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
  })

  // Symptom: a listener got messages of an earlier listen of its pattern behind its ok, and missed in silence those that were
  // published between the two. Cause: no marker goes out while the broker takes no messages, and the listen did not wait.
  it('has given out the messages of an earlier binding when a pattern is live again', async () => {
    const namespace = newNamespace()
    await using proxy = await startFaultProxy(service)
    const options = nodeOptions(proxy.url, namespace, { brokerTimeoutMs: 60_000, brokerHeartbeatMs: 30_000 })
    const { broker, received, events } = await startNode(options)
    const channel = await startBackend(service.url)
    await broker.bind('a.*')
    await proxy.latency(LATENCY_MS)
    for (let number = 0; number < BACKLOG_COUNT; number++) channel.publish(namespace, 'a.b', Buffer.from('1'))
    // It is answered behind them.
    await channel.checkExchange(namespace)
    await broker.unbind('a.*')
    await service.ctl('set_vm_memory_high_watermark', '0.0000001')
    const published = publishText(broker, 'other', '1').catch((cause: unknown) => cause)
    try {
      await vi.waitFor(() => expect(events.at(-1)).toMatch(/^blocked: /))
      await proxy.latency(0)
      expect(received.length).toBeLessThan(BACKLOG_COUNT - 2 * PREFETCH_COUNT)
      await broker.bind('a.*')
      expect(received).toHaveLength(BACKLOG_COUNT)
    } finally {
      await service.ctl('set_vm_memory_high_watermark', '0.6')
    }
    expect(await published).toBeUndefined()
  })
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
      await vi.waitFor(() => expect(events.at(-1)).toBe('up'))
      await vi.waitFor(() => expect(events).toContain('gap broker-lost'))
      expect(events.slice(0, 2)).toEqual([
        'up',
        expect.stringMatching(/^down: broker is unreachable or takes no messages: .+/),
      ])
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
    await vi.waitFor(() => expect(node.events).toContain('gap broker-lost'))
    await vi.waitFor(() => expect(node.events.at(-1)).toBe('up'))
    expect(node.events[1]).toMatch(/^down: .*did not keep up/)
    // Another queue of the broker tells of the dropped ones: a few that follow them may overtake it, in order. The gap ends this.
    const numbers = node.received.map(({ text }) => Number(text))
    const dropAt = numbers.findIndex((number, index) => number !== index)
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
    expect(new Set(numbers).size).toBe(numbers.length)
    expect(dropAt === -1 ? 0 : numbers.length - dropAt).toBeLessThan(1_000)
    await proxy.latency(0)
    channel.publish(namespace, 'b', Buffer.from('"after"'))
    await vi.waitFor(() => expect(node.received.at(-1)?.text).toBe('"after"'))
  })
})
