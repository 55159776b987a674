import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { type Service, startRedis } from 'webmq-services'
import { EPHEMERAL_KEY } from '../../src/adapters/brokers/remote/ephemeral.js'
import { freshNamespace, startNode, text } from './redis-node.js'

let service: Service
let url = ''
let plain: Redis

// Its own: connections of all nodes are listed, and one is killed.
beforeAll(async () => {
  service = await startRedis({ isPrivate: true })
  url = service.url
  plain = new Redis(url)
})
afterAll(async () => {
  plain.disconnect()
  await service.stop()
})

async function subscriptionsOf(redis: Redis, namespace: string): Promise<string[]> {
  const channels = (await redis.pubsub('CHANNELS', `${namespace}:*`)) as string[]
  const keys = channels.map((channel) => channel.slice(namespace.length + 1))
  // Every node has one for ephemeral messages.
  return keys.filter((key) => key !== EPHEMERAL_KEY).sort()
}

describe('redis broker', () => {
  it('hears what plain clients publish, as text if it is JSON', async () => {
    const brokerNamespace = freshNamespace()
    const { broker, sink } = await startNode({ broker: url, brokerNamespace })
    await broker.bind('a.#')
    await plain.publish(`${brokerNamespace}:a.text`, '{"from":"plain"}')
    await plain.publish(`${brokerNamespace}:a`, Buffer.from([0xff, 0x00]))
    await vi.waitFor(() => expect(sink.messages).toHaveLength(2))
    expect(sink.messages.map(({ key, isBinary }) => [key, isBinary])).toEqual([
      ['a.text', false],
      ['a', true],
    ])
  })

  it('delivers the message of a plain client once, however many subscriptions match', async () => {
    const brokerNamespace = freshNamespace()
    const { broker, sink } = await startNode({ broker: url, brokerNamespace })
    for (const pattern of ['a.*', '*.b', '#.a.#', 'a.#.b', 'end']) await broker.bind(pattern)
    const expected: string[] = []
    for (let index = 0; index < 200; index++) {
      // What is live changes under the messages.
      const change = index % 2 === 0 ? broker.bind('a.b') : broker.unbind('a.b')
      const other = index % 3 === 0 ? broker.bind('a.b.#') : index % 3 === 1 ? broker.unbind('a.b.#') : undefined
      expected.push(String(index))
      await Promise.all([change, other, plain.publish(`${brokerNamespace}:a.b`, String(index))])
    }
    await plain.publish(`${brokerNamespace}:end`, '"end"')
    await vi.waitFor(() => expect(sink.messages.at(-1)?.text).toBe('"end"'))
    expect(sink.messages.map(({ text }) => text)).toEqual([...expected, '"end"'])
  })

  it('drops what a plain client publishes to what is no key, and counts it', async () => {
    const brokerNamespace = freshNamespace()
    const { broker, sink } = await startNode({ broker: url, brokerNamespace })
    await broker.bind('#')
    for (const key of ['', 'with space', 'a.*', 'x'.repeat(256)]) await plain.publish(`${brokerNamespace}:${key}`, '1')
    await plain.publish(Buffer.concat([Buffer.from(`${brokerNamespace}:`), Buffer.from([0xff])]), '1')
    await plain.publish(`${brokerNamespace}:cut.short`, Buffer.from([0x00, 0x10]))
    await plain.publish(`${brokerNamespace}:good`, '1')
    await vi.waitFor(() => expect(sink.messages.map(({ key }) => key)).toEqual(['good']))
    expect(broker.stats().malformedCount).toBe(6)
  })

  it('publishes what a plain client can read: 16 bytes, then the payload', async () => {
    const brokerNamespace = freshNamespace()
    const { broker } = await startNode({ broker: url, brokerNamespace })
    const reader = new Redis(url)
    onTestFinished(() => void reader.quit())
    const received: Buffer[] = []
    reader.on('messageBuffer', (_, payload: Buffer) => received.push(payload))
    await reader.subscribe(`${brokerNamespace}:a`)
    await broker.publish(text('a', '{"a":1}'))
    await vi.waitFor(() => expect(received).toHaveLength(1))
    expect(received[0]?.subarray(16).toString()).toBe('{"a":1}')
  })

  it('subscribes to what its patterns need and to nothing broader', async () => {
    const brokerNamespace = freshNamespace()
    const { broker } = await startNode({ broker: url, brokerNamespace })
    for (const pattern of ['exact', 'one.*', 'more.#', 'mid.#.end', 'od[d]?\\.*']) await broker.bind(pattern)
    expect(await subscriptionsOf(plain, brokerNamespace)).toEqual(['exact', 'mid.end', 'more'])
    const globs = new Set<string>()
    const monitor = new Redis(url)
    onTestFinished(() => void monitor.quit())
    for (const key of ['one.a', 'more.a', 'mid.a.end', 'od[d]?\\.a']) {
      // The number of receivers tells.
      expect(await monitor.publish(`${brokerNamespace}:${key}`, '1'), key).toBe(1)
      globs.add(key)
    }
    for (const key of ['one', 'mid.a', 'end', 'odd.a', 'odx?\\.a', 'exact.a']) {
      expect(await monitor.publish(`${brokerNamespace}:${key}`, '1'), key).toBe(0)
    }
  })

  it('has one subscription for patterns of which one contains the others', async () => {
    const brokerNamespace = freshNamespace()
    const { broker } = await startNode({ broker: url, brokerNamespace })
    for (const pattern of ['a.b', 'a.c', 'a.*', 'a.*.d', 'a.#']) await broker.bind(pattern)
    await vi.waitFor(async () => expect(await subscriptionsOf(plain, brokerNamespace)).toEqual(['a']))
    expect(await plain.publish(`${brokerNamespace}:a.b`, '1')).toBe(1)
    await broker.unbind('a.#')
    await broker.unbind('a.*')
    await vi.waitFor(async () => expect(await subscriptionsOf(plain, brokerNamespace)).toEqual(['a.b', 'a.c']))
    expect(await plain.publish(`${brokerNamespace}:a.x.d`, '1')).toBe(1)
    expect(await plain.publish(`${brokerNamespace}:a.x`, '1')).toBe(0)
  })

  it('has one glob for many that begin alike, which brings more than was asked for', async () => {
    const brokerNamespace = freshNamespace()
    const { broker, sink } = await startNode({ broker: url, brokerNamespace })
    const patterns = Array.from({ length: 300 }, (_, index) => `room.${index}.*`)
    const receiversOf = (key: string) => plain.publish(`${brokerNamespace}:${key}`, '1')
    await broker.bind(patterns[0] ?? '')
    expect(await receiversOf('room.unwanted.x')).toBe(0)
    await Promise.all(patterns.slice(1).map((pattern) => broker.bind(pattern)))
    await vi.waitFor(async () => expect(await receiversOf('room.7.x')).toBe(1))
    expect(await receiversOf('room.unwanted.x')).toBe(1)
    expect(await receiversOf('unwanted.7.x')).toBe(0)
    await Promise.all(patterns.slice(1).map((pattern) => broker.unbind(pattern)))
    await vi.waitFor(async () => expect(await receiversOf('room.unwanted.x')).toBe(0))
    await broker.publish(text('room.0.end', 'end'))
    await vi.waitFor(() => expect(sink.messages.at(-1)?.text).toBe('end'))
    expect(new Set(sink.messages.map(({ key }) => key))).toEqual(new Set(['room.7.x', 'room.unwanted.x', 'room.0.end']))
  })

  it('names its two connections', async () => {
    const names = async () => String(await plain.client('LIST')).match(/name=webmq-[0-9a-f]{16} /g) ?? []
    // Connections of other nodes may be ending.
    const before = new Set(await names())
    await startNode({ broker: url })
    const added = (await names()).filter((name) => !before.has(name))
    expect(added).toHaveLength(2)
    expect(new Set(added).size).toBe(1)
  })

  it('is lost when its subscribed connection is killed, tells a gap, and has its subscriptions again', async () => {
    const brokerNamespace = freshNamespace()
    const { broker, sink } = await startNode({ broker: url, brokerNamespace })
    await broker.bind('a.#')
    const killed = String(await plain.call('CLIENT', 'LIST', 'TYPE', 'pubsub'))
      .split('\n')
      .find((client) => /name=webmq-/.test(client) && / psub=1 /.test(client))
    await plain.client('KILL', 'ID', /\bid=(\d+)/.exec(killed ?? '')?.[1] ?? '')
    await vi.waitFor(() => expect(sink.gaps).toEqual(['broker-lost']))
    await broker.publish(text('a.b', '1'))
    await vi.waitFor(() => expect(sink.messages).toHaveLength(1))
    expect(sink.statuses).toEqual(['up', 'down', 'up'])
  })
})
