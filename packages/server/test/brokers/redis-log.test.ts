import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { historyOf, messageIdOf } from 'webmq-conformance'
import { type Service, startFaultProxy, startRedis } from 'webmq-services'
import type { AddressedBrokerOptions } from '../../src/adapters/brokers/remote/options.js'
import type { Position } from '../../src/kernel/ports/broker.js'
import { freshNamespace, OPTIONS, startNode, text } from './redis-node.js'

const RECOVERY = { timeout: 20_000 }
const HISTORY = historyOf('log.#=1000')

let service: Service
let plain: Redis

beforeAll(async () => {
  service = await startRedis({ isPrivate: true })
  plain = new Redis(service.url)
})
afterAll(async () => {
  plain.disconnect()
  await service.stop()
})

async function startLogging(options: Partial<AddressedBrokerOptions> = {}) {
  const brokerNamespace = freshNamespace()
  const node = await startNode({ ...OPTIONS, ...HISTORY, broker: service.url, brokerNamespace, ...options })
  return { ...node, brokerNamespace }
}

type LoggingNode = Awaited<ReturnType<typeof startLogging>>

async function readTexts({ broker }: Pick<LoggingNode, 'broker'>, pattern = 'log.#'): Promise<string[]> {
  const { messages } = await broker.read({ last: 100_000 }, [pattern])
  return messages.map(({ payload }) => Buffer.from(payload).toString())
}

/** In batches, as they come from many clients. */
async function publishMany({ broker }: LoggingNode, count: number, payloadBytes: number): Promise<void> {
  const payload = 'x'.repeat(payloadBytes)
  for (let at = 0; at < count; at += 1_000) {
    const batch = Array.from({ length: Math.min(1_000, count - at) }, (_, index) => text(`log.${index % 7}`, payload))
    await Promise.all(batch.map((message) => broker.publish(message)))
  }
}

describe('the log of a redis', () => {
  it('is bounded in messages under a flood', async () => {
    const node = await startLogging({ historyMaxMessages: 2_000, historyMaxBytes: 64 * 1_048_576 })
    await publishMany(node, 30_000, 100)
    const stream = `${node.brokerNamespace}/log`
    const length = await plain.xlen(stream)
    const bytes = (await plain.memory('USAGE', stream, 'SAMPLES', 0)) ?? 0
    process.stdout.write(`30,000 messages of 100 bytes, 2,000 kept: XLEN ${length}, ${bytes} bytes\n`)
    // Redis drops whole nodes of its tree: 100 messages at most.
    expect(length).toBeGreaterThanOrEqual(2_000)
    expect(length).toBeLessThanOrEqual(2_100)
    expect(bytes).toBeLessThan(2_100 * 250)
  })

  it('is bounded in bytes under a flood', async () => {
    const maxBytes = 2 * 1_048_576
    const node = await startLogging({ historyMaxMessages: 1_000_000, historyMaxBytes: maxBytes })
    await publishMany(node, 20_000, 1_000)
    const stream = `${node.brokerNamespace}/log`
    const length = await plain.xlen(stream)
    const bytes = (await plain.memory('USAGE', stream, 'SAMPLES', 0)) ?? 0
    process.stdout.write(`20,000 messages of 1,000 bytes, 2 MiB kept: XLEN ${length}, ${bytes} bytes\n`)
    expect(bytes).toBeGreaterThan(0.9 * maxBytes)
    expect(bytes).toBeLessThan(1.5 * maxBytes)
  })

  it('is bounded in age', async () => {
    const node = await startLogging(historyOf('log.#=1000,1s'))
    await publishMany(node, 500, 10)
    const stream = `${node.brokerNamespace}/log`
    expect(await plain.xlen(stream)).toBe(500)
    await vi.waitFor(async () => {
      await node.broker.publish(text('log.a', 'later'))
      expect(await plain.xlen(stream)).toBeLessThan(50)
    })
    const [oldest] = await plain.xrange(stream, '-', '+', 'COUNT', 1)
    expect(Date.now() - Number(oldest?.[0].split('-')[1])).toBeLessThan(5_000)
  })

  it('remembers 500 message ids, but not all', async () => {
    const node = await startLogging({ dedupeMaxIds: 500 })
    for (let at = 0; at < 5_000; at += 100)
      await Promise.all(
        Array.from({ length: 100 }, (_, index) =>
          node.broker.publish(text('log.a', 'x', { messageId: messageIdOf(`id-${at + index}`) })),
        ),
      )
    const [ids, before] = await Promise.all(
      ['ids', 'ids-before'].map((name) => plain.hlen(`${node.brokerNamespace}/log/${name}`)),
    )
    expect(before).toBeGreaterThanOrEqual(500)
    expect((ids ?? 0) + (before ?? 0)).toBeLessThanOrEqual(2 * 564)
    for (const name of ['ids', 'ids-before'])
      expect(await plain.pttl(`${node.brokerNamespace}/log/${name}`)).toBeGreaterThan(0)
  })

  it('leaves alone what is not to be logged', async () => {
    const node = await startLogging()
    const { broker, sink, brokerNamespace } = node
    for (const pattern of ['log.a', 'other', '#']) await broker.bind(pattern)
    expect(await broker.publish(text('other', 'mine'))).toEqual({ isDuplicate: false })
    await plain.publish(`${brokerNamespace}:other`, '"theirs"')
    await broker.publish(text('log.a', 'logged'))
    await vi.waitFor(() => expect(sink.messages).toHaveLength(3))
    expect(sink.messages.map(({ text, position }) => [text, position !== undefined])).toEqual([
      ['mine', false],
      ['"theirs"', false],
      ['logged', true],
    ])
    expect(await readTexts(node)).toEqual(['logged'])
    expect(await plain.xlen(`${brokerNamespace}/log`)).toBe(1)
  })

  it('is read by a node that starts while it is written, without a hole', async () => {
    const writer = await startLogging({ historyMaxMessages: 20_000, historyMaxBytes: 64 * 1_048_576 })
    const large = 'x'.repeat(20_000)
    const publish = (from: number, to: number) =>
      Promise.all(
        Array.from({ length: to - from }, (_, index) => {
          const number = from + index
          return writer.broker.publish(text('log.a', number % 50 === 0 ? `${number} ${large}` : `${number}`))
        }),
      )
    await publish(0, 4_000)
    let count = 4_000
    let isOver = false
    const writing = (async () => {
      for (; !isOver && count < 14_000; count += 100) await publish(count, count + 100)
    })()
    for (let round = 0; round < 5; round++) {
      const reader = await startLogging({
        brokerNamespace: writer.brokerNamespace,
        historyMaxMessages: 20_000,
        historyMaxBytes: 64 * 1_048_576,
      })
      const numbers = (await readTexts(reader, 'log.#')).map((each) => Number(each.split(' ')[0]))
      expect(numbers.length).toBeGreaterThanOrEqual(4_000)
      expect(numbers).toEqual(numbers.map((_, index) => index))
    }
    isOver = true
    await writing
  })

  it('goes on after the scripts are gone', async () => {
    const node = await startLogging()
    await node.broker.publish(text('log.a', '1'))
    await plain.script('FLUSH')
    await node.broker.publish(text('log.a', '2'))
    await node.broker.publish(text('log.a', '3'))
    expect(await readTexts(node)).toEqual(['1', '2', '3'])
    expect(node.broker.stats().lostCount).toBe(1)
  })

  it('refuses what Redis has no memory for, and nothing else', async () => {
    const full = await startRedis({ isPrivate: true })
    onTestFinished(() => full.stop())
    const admin = new Redis(full.url)
    onTestFinished(() => admin.disconnect())
    const node = await startLogging({ broker: full.url })
    await node.broker.bind('#')
    await admin.config('SET', 'maxmemory', '1')
    await expect(node.broker.publish(text('log.a', 'too much'))).rejects.toMatchObject({
      code: 'E_BROKER_UNAVAILABLE',
      message: expect.stringContaining('OOM'),
    })
    await node.broker.publish(text('other', 'not stored'))
    expect(node.sink.statuses.at(-1)).toBe('blocked')
    await admin.config('SET', 'maxmemory', '0')
    await vi.waitFor(() => expect(node.sink.statuses.at(-1)).toBe('up'))
    await node.broker.publish(text('log.a', 'again'))
    await vi.waitFor(() => expect(node.sink.messages.map(({ text }) => text)).toEqual(['not stored', 'again']))
    expect(node.broker.stats().lostCount).toBe(0)
  })

  it('brings back, without a gap, a node that did not read fast enough', async () => {
    await plain.config('SET', 'client-output-buffer-limit', 'pubsub 65536 65536 1')
    onTestFinished(async () => {
      await plain.config('SET', 'client-output-buffer-limit', 'pubsub 33554432 8388608 60')
    })
    const node = await startLogging({
      ...historyOf('#=1000'),
      historyMaxBytes: 64 * 1_048_576,
      maxPayloadBytes: 16 * 1_048_576,
    })
    await node.broker.bind('log.a')
    // Larger than the limit: it never comes over the channel.
    await node.broker.publish(text('log.a', 'x'.repeat(8 * 1_048_576)))
    await node.broker.publish(text('log.a', 'end'))
    await vi.waitFor(() => expect(node.sink.messages.map(({ text }) => text.length)).toEqual([8 * 1_048_576, 3]))
    expect(node.broker.stats().lostCount).toBeGreaterThan(0)
    expect(node.sink.gaps).toEqual([])
  })

  it('says so to a node whose place it no longer has', async () => {
    const proxy = await startFaultProxy(service)
    onTestFinished(() => proxy.stop())
    const history = { ...historyOf('#=1000'), historyMaxMessages: 100 }
    const near = await startLogging(history)
    const { brokerNamespace } = near
    const far = await startLogging({ ...history, brokerNamespace, broker: proxy.url })
    await far.broker.bind('log.#')
    const { position: since = NONE } = await near.broker.publish(text('log.a', 'first'))
    await vi.waitFor(() => expect(far.sink.messages).toHaveLength(1))
    await proxy.cut()
    await publishMany(near, 1_000, 10)
    await proxy.heal()
    await vi.waitFor(() => expect(far.sink.statuses.at(-1)).toBe('up'), RECOVERY)
    expect(far.sink.gaps).toEqual(['history-expired'])
    expect(far.sink.messages.length).toBeGreaterThan(100)
    expect(far.sink.messages.length).toBeLessThan(300)
    expect(await far.broker.read({ since }, ['log.#'])).toMatchObject({ gap: 'history-expired' })
    expect(await far.broker.position()).toEqual(await near.broker.position())
  })
})

const NONE: Position = { epoch: 'none', offset: 0, fingerprint: 0 }
