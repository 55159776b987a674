import { setTimeout } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { startFaultProxy, startRedis } from 'webmq-services'
import type { Position } from '../../src/kernel/ports/broker.js'
import { allAreUp, freshNamespace, type Node, publish, RECOVERY, readTexts, startLogging } from './redis-node.js'

const DURABLE = ['--appendonly', 'yes', '--appendfsync', 'always']

describe('a log of a redis that loses its end', () => {
  it('is told to all nodes, whatever stands at its offsets afterwards', async () => {
    const service = await startPrivate()
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
    await vi.waitFor(() => {
      for (const { sink } of nodes) expect(sink.gaps).not.toEqual([])
    }, RECOVERY)
    await allAreUp(a, b)
    const later = await publish(b, 10, 12)
    await vi.waitFor(() => expect(a.sink.messages).toHaveLength(12))
    expect(later[0]?.offset).toBe(lost[0]?.offset)
    for (const node of nodes) {
      for (const since of [kept[2], kept.at(-1), ...lost])
        expect(await readTexts(node, since)).toEqual({ texts: ['10', '11'], gap: 'epoch-changed' })
      expect(await readTexts(node, later[0])).toEqual({ texts: ['11'], gap: undefined })
    }
  })

  // A client resumed as `recovered`, though others had seen messages that were lost: the log was compared with what
  // living nodes remembered, and no node was left.
  it('is told to everybody who comes back where no node is left that has seen the lost end', async () => {
    const service = await startPrivate()
    const brokerNamespace = freshNamespace()
    const before = await startLogging(service.url, { brokerNamespace })
    const kept = await publish(before, 0, 5)
    await snapshot(service.url)
    const lost = await publish(before, 5, 10)
    await before.broker.stop()
    await service.kill()
    await service.restart()
    const after = await startLogging(service.url, { brokerNamespace })
    for (const since of [kept.at(-1), ...lost])
      expect(await readTexts(after, since)).toEqual({ texts: [], gap: 'epoch-changed' })
    const later = await publish(after, 10, 12)
    for (const node of [after, await startLogging(service.url, { brokerNamespace })]) {
      for (const since of [kept[3], kept.at(-1), ...lost])
        expect(await readTexts(node, since)).toEqual({ texts: ['10', '11'], gap: 'epoch-changed' })
      expect(await readTexts(node, later[0])).toEqual({ texts: ['11'], gap: undefined })
    }
  })

  // A second restart from the same snapshot led to the same place, and a client that had read there was given the rest of
  // other messages as `recovered`.
  it('gives no position again when it loses its end twice from one snapshot', async () => {
    const service = await startPrivate()
    const brokerNamespace = freshNamespace()
    const first = await startLogging(service.url, { brokerNamespace })
    await publish(first, 0, 5)
    await snapshot(service.url)
    await first.broker.stop()
    const given: Position[] = []
    for (let round = 0; round < 3; round++) {
      await service.kill()
      await service.restart()
      const node = await startLogging(service.url, { brokerNamespace })
      for (const since of given) {
        expect(await readTexts(node, since)).toEqual({ texts: [], gap: 'epoch-changed' })
      }
      given.push(...(await publish(node, 10, 13)))
      await node.broker.stop()
    }
    expect(new Set(given.map(({ epoch, offset }) => `${epoch}:${offset}`)).size).toBe(9)
  })

  it('is whole where a node has read up to its end, and a node without memory comes first', async () => {
    const service = await startRedis({ args: DURABLE })
    onTestFinished(() => service.stop())
    const brokerNamespace = freshNamespace()
    const proxy = await startFaultProxy(service)
    onTestFinished(() => proxy.stop())
    const knowing = await startLogging(proxy.url, { brokerNamespace })
    const [since] = await publish(knowing, 0, 3)
    await proxy.cut()
    await service.kill()
    await service.restart()
    await proxy.heal()
    const fresh = await startLogging(service.url, { brokerNamespace })
    await allAreUp(fresh, knowing)
    expect(knowing.sink.gaps).toEqual([])
    for (const node of [fresh, knowing])
      expect(await readTexts(node, since)).toEqual({ texts: ['1', '2'], gap: undefined })
  })

  it('is told where the only node that is left has not read up to the end', async () => {
    const service = await startRedis({ args: DURABLE })
    onTestFinished(() => service.stop())
    const brokerNamespace = freshNamespace()
    const proxy = await startFaultProxy(service)
    onTestFinished(() => proxy.stop())
    const behind = await startLogging(proxy.url, { brokerNamespace })
    const gone = await startLogging(service.url, { brokerNamespace })
    await publish(behind, 0, 3)
    await proxy.cut()
    await vi.waitFor(() => expect(behind.sink.statuses.at(-1)).toBe('down'))
    // What comes at once could have been under way to it.
    await setTimeout(1_200)
    await publish(gone, 3, 5)
    await gone.broker.stop()
    await service.kill()
    await service.restart()
    await proxy.heal()
    await vi.waitFor(() => expect(behind.sink.messages).toHaveLength(5), RECOVERY)
    await allAreUp(behind)
    expect(behind.sink.gaps).toEqual(['epoch-changed'])
  })

  // Symptom: clients missed messages in silence. Cause: a node whose link was half-open counted as one that had followed
  // the log until it found out.
  it('is told where the only node that is left heard nothing of the last seconds, and had not found out', async () => {
    const service = await startPrivate()
    const brokerNamespace = freshNamespace()
    const proxy = await startFaultProxy(service)
    onTestFinished(() => proxy.stop())
    const behind = await startLogging(proxy.url, { brokerNamespace, brokerHeartbeatMs: 5_000 })
    const gone = await startLogging(service.url, { brokerNamespace })
    await publish(behind, 0, 3)
    await proxy.swallow()
    // What comes at once could have been under way to it.
    await setTimeout(1_200)
    await publish(gone, 3, 5)
    await snapshot(service.url)
    await publish(gone, 5, 7)
    await gone.broker.stop()
    expect(behind.sink.statuses.at(-1)).toBe('up')
    await service.kill()
    await service.restart()
    await proxy.heal()
    await vi.waitFor(() => expect(behind.sink.messages).toHaveLength(5), RECOVERY)
    await allAreUp(behind)
    expect(behind.sink.gaps).toEqual(['epoch-changed'])
  })

  it('is no lost end when the server begins another life with all it had', async () => {
    const service = await startRedis({ args: DURABLE })
    onTestFinished(() => service.stop())
    const node = await startLogging(service.url)
    const [first] = await publish(node, 0, 3)
    for (let round = 1; round <= 3; round++) {
      await service.kill()
      await service.restart()
      await vi.waitFor(() => expect(node.broker.stats().lostCount).toBe(round), RECOVERY)
      await allAreUp(node)
      // The second restart finds nothing that was published after the first one.
      if (round > 1) await publish(node, 1 + round, 2 + round)
    }
    expect(node.sink.gaps).toEqual([])
    expect(await readTexts(node, first)).toEqual({ texts: ['1', '2', '3', '4'], gap: undefined })
  })

  it('is no lost end when all nodes stop and start, and the server does not', async () => {
    const service = await startPrivate()
    const brokerNamespace = freshNamespace()
    const before = await startLogging(service.url, { brokerNamespace })
    const [first] = await publish(before, 0, 3)
    await before.broker.stop()
    const after = await startLogging(service.url, { brokerNamespace })
    expect(await readTexts(after, first)).toEqual({ texts: ['1', '2'], gap: undefined })
  })
})

async function startPrivate() {
  const service = await startRedis({ isPrivate: true })
  onTestFinished(() => service.stop())
  return service
}

async function snapshot(url: string): Promise<void> {
  const redis = new Redis(url)
  await redis.save()
  await redis.quit()
}
