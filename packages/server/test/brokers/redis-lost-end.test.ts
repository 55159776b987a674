import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { historyOf } from 'webmq-conformance'
import { startRedis, startRedisSentinel } from 'webmq-services'
import type { RedisBrokerOptions } from '../../src/brokers/redis/broker.js'
import type { Position } from '../../src/ports/broker.js'
import { freshNamespace, OPTIONS, startNode, text } from './redis-node.js'

const RECOVERY = { timeout: 20_000 }
const NONE: Position = { epoch: 'none', offset: 0 }

type Node = Awaited<ReturnType<typeof startNode>>

async function startLogging(broker: string, options: Partial<RedisBrokerOptions> = {}): Promise<Node> {
  const node = await startNode({ ...OPTIONS, ...historyOf('#=1000'), ...options, broker })
  await node.broker.bind('#')
  return node
}

/** Publishes numbers, and gives their positions. */
async function publish({ broker }: Node, from: number, to: number): Promise<Position[]> {
  const positions: Position[] = []
  for (let number = from; number < to; number++)
    positions.push((await broker.publish(text('a', `${number}`))).position ?? NONE)
  return positions
}

async function readTexts({ broker }: Node, since: Position) {
  const { messages, gap } = await broker.read({ since }, ['#'])
  return { texts: messages.map(({ payload }) => Buffer.from(payload).toString()), gap }
}

function allAreUp(...nodes: readonly Node[]) {
  return vi.waitFor(
    () => expect(nodes.map(({ sink }) => sink.statuses.at(-1))).toEqual(nodes.map(() => 'up')),
    RECOVERY,
  )
}

describe('a log of a redis that loses its end', () => {
  it('is told to all nodes, and none of its offsets is given again', async () => {
    const service = await startRedis({ isPrivate: true })
    onTestFinished(() => service.stop())
    const brokerNamespace = freshNamespace()
    const nodes = [
      await startLogging(service.url, { brokerNamespace }),
      await startLogging(service.url, { brokerNamespace }),
    ]
    const [a, b] = nodes as [Node, Node]
    const kept = await publish(a, 0, 5)
    await snapshot(service.url)
    const lost = await publish(a, 5, 10)
    await vi.waitFor(() => expect(b.sink.messages).toHaveLength(10))
    await service.kill()
    await service.restart()
    await vi.waitFor(
      () => expect(nodes.map(({ sink }) => sink.gaps)).toEqual([['epoch-changed'], ['epoch-changed']]),
      RECOVERY,
    )
    await allAreUp(a, b)
    const later = await publish(b, 10, 12)
    await vi.waitFor(() => expect(a.sink.messages).toHaveLength(12))
    expect(new Set([...kept, ...lost].map(({ epoch }) => epoch)).size).toBe(1)
    expect(new Set([...lost, ...later].map(({ epoch }) => epoch)).size).toBe(2)
    for (const node of nodes)
      for (const since of [kept[2], lost[2]])
        expect(await readTexts(node, since ?? NONE)).toEqual({ texts: ['10', '11'], gap: 'epoch-changed' })
  }, 60_000)

  it('goes on where nobody has seen the lost end, with offsets that nobody has seen', async () => {
    const service = await startRedis({ isPrivate: true })
    onTestFinished(() => service.stop())
    const brokerNamespace = freshNamespace()
    const before = await startLogging(service.url, { brokerNamespace })
    const kept = await publish(before, 0, 5)
    await snapshot(service.url)
    const lost = await publish(before, 5, 10)
    await before.broker.stop()
    await service.kill()
    await service.restart()
    const after = await startLogging(service.url, { brokerNamespace })
    expect(await readTexts(after, lost[2] ?? NONE)).toEqual({ texts: [], gap: 'history-expired' })
    const [first = NONE] = await publish(after, 10, 12)
    expect(first.epoch).toBe(kept[0]?.epoch)
    expect(first.offset).toBeGreaterThan((lost.at(-1)?.offset ?? 0) + 1_000_000)
    // A client that has seen some of them may have missed others. It was told `recovered`.
    expect(await readTexts(after, lost[2] ?? NONE)).toEqual({ texts: ['10', '11'], gap: 'history-expired' })
    expect(await readTexts(after, kept[3] ?? NONE)).toEqual({ texts: ['4', '10', '11'], gap: undefined })
  }, 60_000)

  it('is no lost end when the server begins another life with all it had', async () => {
    const service = await startRedis({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] })
    onTestFinished(() => service.stop())
    const node = await startLogging(service.url)
    const [first = NONE] = await publish(node, 0, 3)
    for (let round = 1; round <= 3; round++) {
      await service.kill()
      await service.restart()
      await vi.waitFor(() => expect(node.broker.stats().lostCount).toBe(round), RECOVERY)
      await allAreUp(node)
      await publish(node, 2 + round, 3 + round)
    }
    expect(node.sink.gaps).toEqual([])
    expect(await readTexts(node, first)).toEqual({ texts: ['1', '2', '3', '4', '5'], gap: undefined })
  }, 60_000)
})

describe('a log of a redis behind sentinels', () => {
  it.each([
    ['all, goes on', false],
    ['not the end, begins anew', true],
  ])(
    'after a failover to a replica that has %s',
    async (_, isEndLost) => {
      const set = await startRedisSentinel()
      onTestFinished(() => set.stop())
      const address = `redis+sentinel://${new URL(set.sentinel.url).host}/${set.masterName}`
      const brokerNamespace = freshNamespace()
      const a = await startLogging(address, { brokerNamespace })
      const b = await startLogging(address, { brokerNamespace })
      const [first = NONE] = await publish(a, 0, 5)
      const replica = new Redis(set.replica.url)
      onTestFinished(() => replica.disconnect())
      await vi.waitFor(async () => expect(await replica.xlen(`${brokerNamespace}/log`)).toBe(5))
      // It stands still, and does not take in what is published until it is the master.
      if (isEndLost) await replica.call('REPLICAOF', '127.0.0.1', '1')
      if (isEndLost) await publish(a, 5, 10)
      const count = isEndLost ? 10 : 5
      await vi.waitFor(() => expect(b.sink.messages).toHaveLength(count))
      await set.master.kill()
      if (isEndLost) await replica.call('REPLICAOF', '127.0.0.1', new URL(set.master.url).port)
      for (const { broker } of [a, b])
        await vi.waitFor(() => expect(broker.stats().lostCount).toBeGreaterThan(0), RECOVERY)
      await allAreUp(a, b)
      await publish(b, 10, 12)
      await vi.waitFor(() => expect(a.sink.messages).toHaveLength(count + 2), RECOVERY)
      const gaps = isEndLost ? ['epoch-changed'] : []
      expect([a, b].map(({ sink }) => sink.gaps)).toEqual([gaps, gaps])
      expect(await readTexts(a, first)).toEqual(
        isEndLost
          ? { texts: ['10', '11'], gap: 'epoch-changed' }
          : { texts: ['1', '2', '3', '4', '10', '11'], gap: undefined },
      )
    },
    120_000,
  )
})

async function snapshot(url: string): Promise<void> {
  const redis = new Redis(url)
  await redis.save()
  await redis.quit()
}
