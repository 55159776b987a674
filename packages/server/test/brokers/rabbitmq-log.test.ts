import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { historyOf, messageIdOf } from 'webmq-conformance'
import { type SharedRabbitmq, sharedService, startFaultProxy } from 'webmq-services'
import type { Broker } from '../../src/kernel/ports/broker.js'
import { startBackend } from './amqp-backend.js'
import { newNamespace, nodeOptions, publishText, startNode } from './rabbitmq-node.js'

const FLOOD_COUNT = 20_000
const PAYLOAD = JSON.stringify('x'.repeat(98))
/** Half a megabyte at most in all, in segments of 64 KiB. */
const FEW = { ...historyOf('log.#=500'), historyMaxMessages: 500, historyMaxBytes: 262_144 }

let service: SharedRabbitmq

beforeAll(async () => {
  service = await sharedService('rabbitmq')
})

/** A program that speaks plain AMQP, and a namespace whose log is gone when the test ends. */
async function setUp() {
  const namespace = newNamespace()
  const channel = await startBackend(service.url)
  onTestFinished(async () => void (await channel.deleteQueue(`${namespace}.log`)))
  return { namespace, channel }
}

async function textsOf(broker: Broker, pattern: string): Promise<string[]> {
  const { messages } = await broker.read({ last: 1_000 }, [pattern])
  return messages.map(({ key, payload }) => `${key} ${new TextDecoder().decode(payload)}`)
}

describe('the log of a rabbitmq and plain AMQP', () => {
  it('has what other programs publish, on every node at the same place, also on one that starts later', async () => {
    const { namespace, channel } = await setUp()
    const options = nodeOptions(service.url, namespace, historyOf('log.#=1000'))
    const a = await startNode(options)
    await a.broker.bind('log.*')
    channel.publish(namespace, 'log.1', Buffer.from('"one"'), { contentType: 'application/json' })
    channel.publish(namespace, 'other.1', Buffer.from('"not logged"'))
    await vi.waitFor(() => expect(a.received.map(({ text }) => text)).toEqual(['"one"']))
    await publishText(a.broker, 'log.2', '"two"')
    channel.publish(namespace, 'log.3', Buffer.from('"three"'))
    await vi.waitFor(() => expect(a.received.at(-1)?.text).toBe('"three"'))
    const b = await startNode(options)
    const wanted = ['log.1 "one"', 'log.2 "two"', 'log.3 "three"']
    for (const { broker } of [a, b]) expect(await textsOf(broker, '#')).toEqual(wanted)
    await vi.waitFor(async () => expect(await b.broker.position()).toEqual(await a.broker.position()))
    const [first] = (await a.broker.read({ last: 3 }, ['log.#'])).messages
    for (const { broker } of [a, b]) {
      const { messages, gap } = await broker.read(
        { since: first?.position ?? { epoch: '', offset: 0, fingerprint: 0 } },
        ['log.#'],
      )
      expect([messages.length, gap]).toEqual([2, undefined])
    }
    expect([...a.events, ...b.events]).toEqual(['up', 'up'])
  })

  it('brings a message once where a pattern is logged in part, and what is sent straight to it not at all', async () => {
    const { namespace, channel } = await setUp()
    const { broker, received } = await startNode(nodeOptions(service.url, namespace, historyOf('log.#=1000')))
    for (const pattern of ['*.1', '#.1', 'log.1']) await broker.bind(pattern)
    channel.sendToQueue(`${namespace}.log`, Buffer.from('"straight"'))
    for (const key of ['log.1', 'other.1', 'log.1', 'other.1']) channel.publish(namespace, key, Buffer.from(`"${key}"`))
    await vi.waitFor(() => expect(received).toHaveLength(4))
    await publishText(broker, 'log.1', '"end"')
    await vi.waitFor(() => expect(received).toHaveLength(5))
    expect(received.filter(({ key }) => key === 'log.1').map(({ text }) => text)).toEqual([
      '"log.1"',
      '"log.1"',
      '"end"',
    ])
    expect(await textsOf(broker, '#')).toEqual(['log.1 "log.1"', 'log.1 "log.1"', 'log.1 "end"'])
    expect(broker.stats().malformedCount).toBe(1)
  })
})

describe('message ids in the log of a rabbitmq', () => {
  it('are known to a node that starts later, also those that its copy of the log no longer holds', async () => {
    const { namespace } = await setUp()
    const options = nodeOptions(service.url, namespace, { ...historyOf('log.#=1000'), historyMaxMessages: 50 })
    const { broker } = await startNode(options)
    const once = { key: 'log.a', payload: Buffer.from('"once"'), isBinary: false, messageId: messageIdOf('01J9') }
    const { position } = await broker.publish(once)
    for (let number = 0; number < 200; number++) await publishText(broker, 'log.a', `${number}`)
    const fresh = await startNode(options)
    expect(await textsOf(fresh.broker, '#')).toHaveLength(50)
    expect(await fresh.broker.publish(once)).toEqual({ position, isDuplicate: true })
    // RabbitMQ was not asked.
    expect(fresh.broker.stats().acceptedCount).toBe(0)
  })
})

describe('the bounds of the log of a rabbitmq', () => {
  it('hold under a flood, and a node that was away for longer is told, and goes on', async () => {
    const { namespace, channel } = await setUp()
    const proxy = await startFaultProxy(service)
    onTestFinished(() => proxy.stop())
    const away = await startNode(nodeOptions(proxy.url, namespace, { brokerHeartbeatMs: 400, ...FEW }))
    const { broker } = await startNode(nodeOptions(service.url, namespace, FEW))
    await away.broker.bind('log.#')
    await publishText(broker, 'log.first', '"first"')
    await vi.waitFor(() => expect(away.received).toHaveLength(1))
    await proxy.cut()
    for (let done = 0; done < FLOOD_COUNT; done += 1_000) {
      await Promise.all(Array.from({ length: 1_000 }, () => publishText(broker, 'log.flood', PAYLOAD)))
    }
    // RabbitMQ counts what is in a stream now and then.
    const messageCount = await vi.waitFor(async () => {
      const { messageCount } = await channel.checkQueue(`${namespace}.log`)
      expect(messageCount).toBeGreaterThan(500)
      return messageCount
    })
    process.stdout.write(`log of a rabbitmq: ${messageCount} of ${FLOOD_COUNT} messages are left in 512 KiB\n`)
    // 100 bytes, and what RabbitMQ adds: between 2 and 6 to the KiB.
    expect(messageCount).toBeLessThan(4_000)
    expect(await textsOf(broker, '#')).toHaveLength(500)
    await proxy.heal()
    await vi.waitFor(() => expect(away.events.at(-1)).toBe('up'))
    expect(away.events).toContain('gap history-expired')
    await publishText(broker, 'log.last', '"last"')
    await vi.waitFor(() => expect(away.received.at(-1)?.text).toBe('"last"'))
    expect(await away.broker.position()).toEqual(await broker.position())
  })
})
