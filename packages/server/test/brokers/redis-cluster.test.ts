import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { BrokerSink, BrokerStatus } from '../../src/broker.js'
import { createRedisBroker, type RedisBrokerOptions } from '../../src/brokers/redis-broker.js'
import { brokerSuite } from '../../src/conformance/broker-suite.js'
import { type RedisCluster, startRedisCluster, startRedisSentinel } from '../../src/services/index.js'

const OPTIONS: Omit<RedisBrokerOptions, 'broker' | 'brokerNamespace'> = {
  brokerTimeoutMs: 5_000,
  brokerStartTimeoutMs: 5_000,
  brokerHeartbeatMs: 300,
  brokerMaxPendingBytes: 64 * 1_048_576,
  dedupeWindowMs: 60_000,
  dedupeMaxIds: 1_000,
}
const RECOVERY = { timeout: 20_000 }
const encoder = new TextEncoder()

let namespaceCount = 0

function freshNamespace(): string {
  return `test-${process.pid}-${namespaceCount++}`
}

function hostsOf(urls: readonly string[]): string {
  return urls.map((each) => new URL(each).host).join(',')
}

async function startNode(broker: string, brokerNamespace: string) {
  const node = createRedisBroker({ ...OPTIONS, broker, brokerNamespace })
  const texts: string[] = []
  const gaps: string[] = []
  const statuses: BrokerStatus[] = []
  const sink: BrokerSink = {
    deliver: ({ payload }) => texts.push(Buffer.from(payload).toString()),
    gap: (reason) => gaps.push(reason),
    status: (status) => statuses.push(status),
  }
  onTestFinished(() => node.stop())
  await node.start(sink)
  const publish = (key: string, text: string) =>
    node.publish({ key, payload: encoder.encode(JSON.stringify(text)), isBinary: false })
  return { node, texts, gaps, statuses, publish }
}

describe('redis cluster', () => {
  let cluster: RedisCluster
  let address = ''
  let plain: readonly Redis[] = []

  beforeAll(async () => {
    cluster = await startRedisCluster()
    address = `redis+cluster://${hostsOf(cluster.urls)}`
    plain = cluster.urls.map((url) => new Redis(url))
  }, 120_000)
  afterAll(async () => {
    for (const each of plain) each.disconnect()
    await cluster.stop()
  })

  const shardChannels = async (namespace: string) =>
    (await Promise.all(plain.map((each) => each.pubsub('SHARDCHANNELS', `${namespace}*`)))) as string[][]

  brokerSuite(
    'redis cluster',
    () => {
      const brokerNamespace = freshNamespace()
      return {
        createNode: () => createRedisBroker({ ...OPTIONS, broker: address, brokerNamespace }),
        residue: async () => (await shardChannels(brokerNamespace)).flat(),
      }
    },
    { history: false, ordered: true, confirms: true, queueGroups: false, durable: false, manyNodes: true },
  )

  it('spreads keys over all masters, and a pattern that begins with a word needs one channel', async () => {
    const namespace = freshNamespace()
    const { node } = await startNode(address, namespace)
    const heartbeats = (await shardChannels(namespace)).flat().length
    expect(heartbeats).toBe(3)
    for (const pattern of ['a.b', 'a.*', 'a.#']) await node.bind(pattern)
    expect((await shardChannels(namespace)).flat()).toHaveLength(heartbeats + 1)
    await node.bind('*.b')
    const spread = (await shardChannels(namespace)).map(({ length }) => length)
    expect(spread.reduce((sum, count) => sum + count)).toBe(heartbeats + 256)
    expect(Math.min(...spread)).toBeGreaterThan(50)
    await node.unbind('*.b')
    await vi.waitFor(async () => expect((await shardChannels(namespace)).flat()).toHaveLength(heartbeats + 1))
  })

  it('asks the next server when the first of its address is not there', async () => {
    await startNode(address.replace('://', '://127.0.0.1:1,'), freshNamespace())
  })

  it('is lost when a slot moves, tells a gap, and finds the slot again', async () => {
    const namespace = freshNamespace()
    const [listener, publisher] = [await startNode(address, namespace), await startNode(address, namespace)]
    await listener.node.bind('a')
    const channel = (await shardChannels(namespace)).flat().find((each) => each.startsWith(`${namespace}:{`)) ?? ''
    const owner = (await shardChannels(namespace)).findIndex((channels) => channels.includes(channel))
    const target = (owner + 1) % plain.length
    const slot = Number(await plain[0]?.cluster('KEYSLOT', channel))
    const targetId = String(await plain[target]?.cluster('MYID'))
    // No keys are in it: nothing to migrate. The owner last: it would not know who took it.
    for (const index of [target, owner, 3 - owner - target])
      await plain[index]?.cluster('SETSLOT', slot, 'NODE', targetId)
    await vi.waitFor(() => expect(listener.gaps).toEqual(['broker-lost']), RECOVERY)
    await vi.waitFor(() => expect(listener.statuses.at(-1)).toBe('up'), RECOVERY)
    await publisher.publish('a', 'moved')
    await vi.waitFor(() => expect(listener.texts).toContain('"moved"'), RECOVERY)
  })

  it('is lost while a master is, and comes back with it', async () => {
    const namespace = freshNamespace()
    const [listener, publisher] = [await startNode(address, namespace), await startNode(address, namespace)]
    for (const pattern of ['a', 'b', 'c', 'd']) await listener.node.bind(pattern)
    await cluster.nodes[1]?.kill()
    await vi.waitFor(() =>
      expect([listener, publisher].map(({ statuses }) => statuses.at(-1))).toEqual(['down', 'down']),
    )
    await cluster.nodes[1]?.restart()
    await vi.waitFor(() => expect(listener.gaps).toEqual(['broker-lost']), RECOVERY)
    await vi.waitFor(() => expect(publisher.statuses.at(-1)).toBe('up'), RECOVERY)
    for (const key of ['a', 'b', 'c', 'd']) await publisher.publish(key, key)
    await vi.waitFor(() => expect([...listener.texts].sort()).toEqual(['"a"', '"b"', '"c"', '"d"']), RECOVERY)
  }, 60_000)

  it('is refused by a server that is no cluster', async () => {
    const sentinel = await startRedisSentinel()
    onTestFinished(() => sentinel.stop())
    const node = createRedisBroker({
      ...OPTIONS,
      broker: sentinel.master.url.replace('redis://', 'redis+cluster://'),
      brokerNamespace: 'x',
    })
    await expect(
      node.start({ deliver: () => undefined, gap: () => undefined, status: () => undefined }),
    ).rejects.toMatchObject({ code: 'E_BROKER_REFUSED' })
  }, 60_000)
})

describe('redis behind sentinels', () => {
  it('goes to the new master after a failover, and tells a gap', async () => {
    const { master, sentinel, masterName, stop } = await bound(startRedisSentinel())
    onTestFinished(stop)
    const address = `redis+sentinel://127.0.0.1:1,${hostsOf([sentinel.url])}/${masterName}`
    const namespace = freshNamespace()
    const [listener, publisher] = [await startNode(address, namespace), await startNode(address, namespace)]
    await listener.node.bind('a.#')
    await publisher.publish('a.b', 'before')
    await vi.waitFor(() => expect(listener.texts).toEqual(['"before"']))
    await master.kill()
    await vi.waitFor(() => expect(listener.gaps).toEqual(['broker-lost']), RECOVERY)
    await vi.waitFor(() => expect(publisher.statuses.at(-1)).toBe('up'), RECOVERY)
    await publisher.publish('a.b', 'after')
    await vi.waitFor(() => expect(listener.texts).toEqual(['"before"', '"after"']))
  }, 120_000)

  it('does not start when no sentinel knows the master', async () => {
    const { sentinel, stop } = await bound(startRedisSentinel())
    onTestFinished(stop)
    const node = createRedisBroker({
      ...OPTIONS,
      brokerStartTimeoutMs: 1_000,
      broker: `redis+sentinel://${hostsOf([sentinel.url])}/unknown`,
      brokerNamespace: 'x',
    })
    await expect(
      node.start({ deliver: () => undefined, gap: () => undefined, status: () => undefined }),
    ).rejects.toMatchObject({ code: 'E_BROKER_UNAVAILABLE' })
  }, 120_000)
})

/** What was started, with a `stop` that stands alone. */
async function bound(started: ReturnType<typeof startRedisSentinel>) {
  const set = await started
  return { master: set.master, sentinel: set.sentinel, masterName: set.masterName, stop: () => set.stop() }
}
