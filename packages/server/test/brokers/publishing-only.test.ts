import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { historyOf, messageIdOf } from 'webmq-conformance'
import { type Service, sharedService, startFaultProxy, startNats, startRedis } from 'webmq-services'
import { createNatsBroker } from '../../src/brokers/nats/broker.js'
import { createRabbitmqBroker } from '../../src/brokers/rabbitmq/broker.js'
import { createRedisBroker, type RedisBrokerOptions } from '../../src/brokers/redis/broker.js'
import type { Broker, Position } from '../../src/ports/broker.js'
import { startBackend } from './amqp-backend.js'
import { askJetStream, plainClient } from './nats-node.js'
import { createSink, freshNamespace, OPTIONS, text } from './redis-node.js'

/** A broker, and a fault that its log survives. */
interface Place {
  readonly url: string
  fail(): Promise<void>
  stop(): Promise<void>
}

/** The brokers. RabbitMQ takes ten seconds to start, so its connections are cut instead. */
const KINDS = [
  {
    name: 'redis',
    start: () => placeOf(startRedis({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] })),
    create: createRedisBroker,
    tellsPositions: true,
  },
  {
    name: 'nats',
    start: () => placeOf(startNats({ hasJetStream: true })),
    create: createNatsBroker,
    tellsPositions: true,
  },
  { name: 'rabbitmq', start: cutPlace, create: createRabbitmqBroker, tellsPositions: false },
] as const

async function placeOf(starting: Promise<Service>): Promise<Place> {
  const service = await starting
  const fail = async () => {
    await service.kill()
    await service.restart()
  }
  return { url: service.url, fail, stop: () => service.stop() }
}

async function cutPlace(): Promise<Place> {
  const proxy = await startFaultProxy(await sharedService('rabbitmq'))
  const fail = async () => {
    await proxy.cut()
    await proxy.heal()
  }
  return { url: proxy.url, fail, stop: () => proxy.stop() }
}

const RECOVERY = { timeout: 20_000 }
const LOGGED = historyOf('#=1000')

describe.each(KINDS)(
  'a node that publishes to a log of $name without following it',
  ({ start, create, tellsPositions }) => {
    let place: Place

    beforeAll(async () => {
      place = await start()
    })
    afterAll(() => place.stop())

    /** Starts nodes of one namespace. */
    function system(options: Partial<RedisBrokerOptions> = {}) {
      const brokerNamespace = freshNamespace()
      return async (followsLog: 'always' | 'on-demand') => {
        const broker = await create({
          ...OPTIONS,
          ...LOGGED,
          ...options,
          brokerTimeoutMs: 20_000,
          maxPayloadBytes: 65_536,
          broker: place.url,
          brokerNamespace,
          followsLog,
        })
        const sink = createSink()
        onTestFinished(() => broker.stop())
        await broker.start(sink)
        return { broker, sink, texts: () => sink.messages.map(({ text }) => text) }
      }
    }

    it('reaches those that follow, and receives nothing itself', async () => {
      const startNode = system()
      const [publisher, listener] = [await startNode('on-demand'), await startNode('always')]
      await listener.broker.bind('log.a')
      const accepted = []
      for (const name of ['1', '2', '3']) accepted.push(await publisher.broker.publish(text('log.a', name)))
      await vi.waitFor(() => expect(listener.texts()).toEqual(['1', '2', '3']))
      const positions = listener.sink.messages.map(({ position }) => position)
      expect(accepted).toEqual(
        positions.map((position) => (tellsPositions ? { position, isDuplicate: false } : { isDuplicate: false })),
      )
      expect(publisher.broker.stats()).toMatchObject({ acceptedCount: 3, receivedCount: 0, log: { messageCount: 0 } })
      expect(await publisher.broker.position()).toBeUndefined()
      expect(() => publisher.broker.read({ last: 1 }, ['log.a'])).toThrow(
        expect.objectContaining({ code: 'E_BROKER_UNAVAILABLE' }),
      )
    })

    it('has the whole log once it follows, delivers what comes later, and forgets it when it no longer follows', async () => {
      const startNode = system()
      const node = await startNode('on-demand')
      const { broker, texts } = node
      for (let round = 0; round < 3; round++) {
        const name = (part: string) => `${round}${part}`
        await broker.publish(text('log.a', name('before')))
        await Promise.all([broker.follow?.(), broker.publish(text('log.a', name('meanwhile'))), broker.follow?.()])
        await broker.bind('log.a')
        await broker.publish(text('log.a', name('after')))
        await vi.waitFor(() => expect(texts()).toEqual([name('after')]))
        expect((await textsIn(broker)).slice(-3)).toEqual([name('before'), name('meanwhile'), name('after')])
        expect((await textsIn(broker)).length).toBe(3 * round + 3)
        await broker.unbind('log.a')
        broker.unfollow?.()
        node.sink.messages.length = 0
        expect(broker.stats()).toMatchObject({ pendingCount: 0, log: { messageCount: 0 } })
      }
      expect(node.sink.gaps).toEqual([])
    })

    it('accepts every publish, and once, while it begins and ends to follow', async () => {
      const startNode = system()
      const [{ broker }, listener] = [await startNode('on-demand'), await startNode('always')]
      await listener.broker.bind('log.a')
      let number = 0
      for (let round = 0; round < 10; round++) {
        const accepted: unknown[] = []
        const publishSome = () => {
          for (let count = 0; count < 5; count++) accepted.push(broker.publish(text('log.a', `${number++}`)))
        }
        publishSome()
        // Also ended before it is complete.
        const following = broker.follow?.()
        publishSome()
        if (round % 2 === 0) await following
        publishSome()
        broker.unfollow?.()
        publishSome()
        await Promise.all([...accepted, following?.catch(() => undefined)])
      }
      const wanted = Array.from({ length: number }, (_, at) => `${at}`)
      await vi.waitFor(() => expect(listener.texts()).toEqual(wanted), RECOVERY)
      expect(broker.stats()).toMatchObject({ pendingCount: 0, rejectedCount: 0, lostCount: 0 })
      await broker.follow?.()
      expect(await textsIn(broker)).toEqual(wanted)
    })

    it('knows duplicates as far as the broker does, and those that follow drop the others', async () => {
      const startNode = system()
      const [one, other, listener] = [
        await startNode('on-demand'),
        await startNode('on-demand'),
        await startNode('always'),
      ]
      await listener.broker.bind('log.a')
      const message = text('log.a', 'once', { messageId: messageIdOf('id') })
      const first = await one.broker.publish(message)
      for (const { broker } of [one, other, listener]) {
        const again = await broker.publish(message)
        if (tellsPositions || broker !== other.broker) expect(again.isDuplicate).toBe(true)
        if (tellsPositions) expect(again).toEqual({ ...first, isDuplicate: true })
      }
      await one.broker.publish(text('log.a', 'end'))
      await vi.waitFor(() => expect(listener.texts()).toEqual(['once', 'end']))
      expect(await textsIn(listener.broker)).toEqual(['once', 'end'])
    })

    it('loses nothing when its broker fails, doubles nothing, and keeps the order', async () => {
      const startNode = system()
      const [publisher, listener] = [await startNode('on-demand'), await startNode('always')]
      await listener.broker.bind('log.a')
      const published: Promise<unknown>[] = []
      const positions: (Position | undefined)[] = []
      let isOver = false
      const flow = (async () => {
        for (let number = 0; !isOver; number++) {
          published.push(
            Promise.resolve(publisher.broker.publish(text('log.a', `${number}`))).then(({ position }) =>
              positions.push(position),
            ),
          )
          await new Promise((resolve) => setTimeout(resolve, 2))
        }
      })()
      for (let round = 1; round <= 2; round++) {
        const { length } = listener.sink.messages
        await vi.waitFor(() => expect(listener.sink.messages.length).toBeGreaterThan(length + 20), RECOVERY)
        await place.fail()
        const at = published.length
        await vi.waitFor(() => expect(listener.sink.messages.length).toBeGreaterThan(at + 20), RECOVERY)
      }
      isOver = true
      await flow
      await Promise.all(published)
      const wanted = published.map((_, number) => `${number}`)
      await vi.waitFor(() => expect(listener.sink.messages).toHaveLength(published.length), RECOVERY)
      expect(listener.texts()).toEqual(wanted)
      expect(listener.sink.gaps).toEqual([])
      expect(publisher.broker.stats()).toMatchObject({ rejectedCount: 0, lostCount: 2, pendingCount: 0 })
      expect((await textsIn(listener.broker)).slice(-500)).toEqual(wanted.slice(-500))
    })
  },
)

describe('a node that publishes to a log of rabbitmq without following it', () => {
  it('learns that the log was deleted, and publishes again to the next one', async () => {
    const { url } = await sharedService('rabbitmq')
    const brokerNamespace = freshNamespace()
    const channel = await startBackend(url)
    onTestFinished(async () => void (await channel.deleteQueue(`${brokerNamespace}.log`)))
    const options = { ...OPTIONS, ...LOGGED, broker: url, brokerNamespace, followsLog: 'on-demand' } as const
    const broker = await createRabbitmqBroker(options)
    onTestFinished(() => broker.stop())
    await broker.start(createSink())
    await broker.publish(text('log.a', 'lost with its log'))
    await channel.deleteQueue(`${brokerNamespace}.log`)
    await broker.publish(text('log.a', 'kept'))
    expect(broker.stats().lostCount).toBe(1)
    await broker.follow?.()
    expect(await textsIn(broker)).toEqual(['kept'])
  })

  it('names no epoch, and those that follow do so for it', async () => {
    const { url } = await sharedService('rabbitmq')
    const brokerNamespace = freshNamespace()
    const channel = await startBackend(url)
    onTestFinished(async () => void (await channel.deleteQueue(`${brokerNamespace}.log`)))
    const few = { ...historyOf('#=50'), historyMaxMessages: 50, historyMaxBytes: 65_536 }
    const started = async (followsLog: 'always' | 'on-demand') => {
      const broker = await createRabbitmqBroker({ ...OPTIONS, ...few, broker: url, brokerNamespace, followsLog })
      onTestFinished(() => broker.stop())
      await broker.start(createSink())
      return broker
    }
    const [publisher, follower] = [await started('on-demand'), await started('always')]
    const { epoch } = (await follower.position()) ?? {}
    // Ten times what the stream keeps: its first records are gone. The follower is never as far behind as to lose its place.
    const payload = 'x'.repeat(4_000)
    for (let count = 5; count <= 250; count += 5) {
      await Promise.all(Array.from({ length: 5 }, () => publisher.publish(text('log.a', payload))))
      await vi.waitFor(() => expect(follower.stats().receivedCount).toBe(count), { ...RECOVERY, interval: 2 })
    }
    await follower.stop()
    const next = await started('always')
    expect((await next.position())?.epoch).toBe(epoch)
  })
})

describe('a node that publishes to a log of nats without following it', () => {
  it('takes another link when others have found that the log has lost its end', async () => {
    const { url } = await sharedService('nats')
    const brokerNamespace = freshNamespace()
    const options = { ...OPTIONS, ...LOGGED, broker: url, brokerNamespace, maxPayloadBytes: 65_536 }
    const broker = await createNatsBroker({ ...options, followsLog: 'on-demand' })
    onTestFinished(() => broker.stop())
    await broker.start(createSink())
    const client = await plainClient({ url })
    client.publish(`${brokerNamespace}.$log`, '0')
    await broker.publish(text('log.a', 'before'))
    expect(broker.stats().lostCount).toBe(0)
    client.publish(`${brokerNamespace}.$log`, '1')
    await vi.waitFor(() => expect(broker.stats().lostCount).toBe(1), RECOVERY)
    expect((await broker.publish(text('log.a', 'after'))).position).toBeDefined()
    await askJetStream({ url }, `STREAM.DELETE.${brokerNamespace}-log`)
  })
})

async function textsIn(broker: Broker): Promise<string[]> {
  const { messages } = await broker.read({ last: 100_000 }, ['#'])
  return messages.map(({ payload }) => Buffer.from(payload).toString())
}
