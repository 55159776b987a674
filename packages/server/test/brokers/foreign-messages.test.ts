import { headers as natsHeaders } from '@nats-io/transport-node'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createNatsBroker } from 'webmq-broker-nats'
import { createRabbitmqBroker } from 'webmq-broker-rabbitmq'
import { createRedisBroker } from 'webmq-broker-redis'
import { historyOf, messageIdOf } from 'webmq-conformance'
import { sharedService } from 'webmq-services'
import { encodeEnvelope } from '../../src/adapters/brokers/remote/envelope.js'
import type { Broker } from '../../src/kernel/ports/broker.js'
import type { HistoryOptions } from '../../src/kernel/ports/history-rules.js'
import { FakeServer } from '../fake-server.js'
import { startBackend } from './amqp-backend.js'
import { freshNamespace, plainClient, startNode as startNats } from './nats-node.js'
import { nodeOptions } from './rabbitmq-node.js'
import { OPTIONS } from './redis-node.js'

/*
 * Whatever other programs write to a broker, or nodes with other options: the process lives, other messages arrive, and
 * what is refused is told.
 */

const MAX_PAYLOAD_BYTES = 65_536
const ROUNDS = 120

/** One message of another program. */
interface Foreign {
  readonly key: string
  readonly bytes: Buffer
  readonly headers: Readonly<Record<string, string>>
}

/** One broker that is there, and how another program writes to it. */
interface System {
  createBroker(maxPayloadBytes: number): Broker | Promise<Broker>
  /** Writes to where messages are, and beside. Never rejects for what the broker itself refuses. */
  write(message: Foreign): Promise<void>
}

const NODE = '0123456789abcdef'
const source = { sequence: 1, payload: Buffer.from('"x"'), isBinary: false, publisher: 7, isLogged: true }
const VALID = encodeEnvelope(NODE, { ...source, key: 'a.b', messageId: messageIdOf('id') }, 'a.b')

const bytes: fc.Arbitrary<Buffer> = fc.oneof(
  fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes)),
  fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from([0, 0x40 | (bytes[0] ?? 0), ...bytes])),
  // An envelope with other bytes in some places, and cut short.
  fc
    .tuple(fc.array(fc.tuple(fc.nat(VALID.length - 1), fc.nat(255)), { maxLength: 4 }), fc.nat(VALID.length))
    .map(([changes, length]) => {
      const copy = Buffer.from(VALID)
      for (const [at, byte] of changes) copy[at] = byte
      return copy.subarray(0, length)
    }),
  fc.json().map((text) => Buffer.from(text)),
  fc.constant(Buffer.alloc(MAX_PAYLOAD_BYTES + 1, '1')),
)
const text = fc.oneof(
  fc.constantFrom(
    '',
    'a',
    'a\r\nb',
    '\u0000',
    'webmq-',
    `webmq-${NODE}-1-97`,
    `webmq-${NODE}-9-97-99999999999:x`,
    'e.1',
  ),
  fc.string({ unit: 'binary', maxLength: 20 }),
)
const foreign: fc.Arbitrary<Foreign> = fc.record({
  key: fc.oneof(fc.constantFrom('a.b', 'a', '', 'a b', 'a\nb', '$webmq', 'é', 'x'.repeat(250), 'a.*'), text),
  bytes,
  headers: fc.dictionary(fc.constantFrom('webmq-log', 'x-stream-offset', 'Nats-Msg-Id', 'type', 'k', 'é', ''), text, {
    maxKeys: 4,
  }),
})

async function redis(history: HistoryOptions): Promise<System> {
  const { url } = await sharedService('redis')
  const brokerNamespace = freshNamespace()
  const plain = new Redis(url)
  onTestFinished(() => plain.disconnect())
  const all = { ...OPTIONS, ...history, broker: url, brokerNamespace }
  return {
    createBroker: async (maxPayloadBytes) => createRedisBroker({ ...all, maxPayloadBytes }),
    write: async ({ key, bytes }) => {
      await plain.publish(`${brokerNamespace}:${key}`, bytes)
      await plain.publish(`${brokerNamespace}/log`, bytes)
    },
  }
}

async function nats(history: HistoryOptions): Promise<System> {
  const { url } = await sharedService('nats')
  const brokerNamespace = freshNamespace()
  const plain = await plainClient({ url })
  const base = await startNats({ broker: url, brokerNamespace, ...history })
  await base.broker.stop()
  const { brokerTimeoutMs, brokerStartTimeoutMs, brokerHeartbeatMs, brokerMaxPendingBytes } = OPTIONS
  const all = { brokerTimeoutMs, brokerStartTimeoutMs, brokerHeartbeatMs, brokerMaxPendingBytes }
  return {
    createBroker: (maxPayloadBytes) =>
      createNatsBroker({
        ...all,
        dedupeWindowMs: 60_000,
        dedupeMaxIds: 1_000,
        ...history,
        broker: url,
        brokerNamespace,
        maxPayloadBytes,
      }),
    write: async ({ key, bytes, headers }) => {
      const own = natsHeaders()
      try {
        for (const [name, value] of Object.entries(headers)) own.append(name, value)
        plain.publish(`${brokerNamespace}.${key}`, bytes, { headers: own })
      } catch {
        // The library of the other program refuses to send it.
        plain.publish(`${brokerNamespace}.a.b`, bytes)
      }
      await plain.flush()
    },
  }
}

async function rabbitmq(history: HistoryOptions): Promise<System> {
  const { url } = await sharedService('rabbitmq')
  const namespace = freshNamespace()
  const channel = await startBackend(url)
  onTestFinished(async () => void (await channel.deleteQueue(`${namespace}.log`)))
  return {
    createBroker: async (maxPayloadBytes) =>
      createRabbitmqBroker(nodeOptions(url, namespace, { ...history, maxPayloadBytes })),
    write: async ({ key, bytes, headers }) => {
      const { type, k, ...rest } = headers
      const more = {
        ...(type === undefined ? {} : { messageId: type }),
        ...(k === undefined ? {} : { contentType: k }),
        headers: { ...rest, list: [1, { a: null }] },
      }
      try {
        channel.publish(namespace, key, bytes, more)
        channel.sendToQueue(`${namespace}.log`, bytes, more)
      } catch (error) {
        // The library of the other program cannot encode it.
        if (!(error instanceof TypeError || error instanceof RangeError || error instanceof Error)) throw error
      }
    },
  }
}

async function startServer(system: System, maxPayloadBytes = MAX_PAYLOAD_BYTES): Promise<FakeServer> {
  const broker = await system.createBroker(maxPayloadBytes)
  const fake = await FakeServer.start({ maxPayloadBytes, maxOutboxBytes: 16_777_216 }, { broker })
  onTestFinished(() => fake.server.stop({ drainMs: 0 }))
  return fake
}

describe.each([
  ['redis', redis, historyOf()],
  ['redis with a log', redis, historyOf('#=1000')],
  ['nats', nats, historyOf()],
  ['nats with a log', nats, historyOf('#=1000')],
  ['rabbitmq', rabbitmq, historyOf()],
  ['rabbitmq with a log', rabbitmq, historyOf('#=1000')],
])('messages of other programs over %s', (name, create, history) => {
  const hasLog = !history.history.isEmpty

  it('never end the process or the way of other messages, whatever they are', async () => {
    const failures: unknown[] = []
    const failed = (error: unknown) => failures.push(error)
    for (const event of ['uncaughtException', 'unhandledRejection']) {
      process.on(event, failed)
      onTestFinished(() => void process.off(event, failed))
    }
    const system = await create(history)
    const fake = await startServer(system)
    const client = await fake.connect()
    client.send({ verb: 'listen', id: 'l', pattern: '#' })
    await vi.waitFor(() => expect(client.received('ok').map(({ id }) => id)).toEqual(['l']))
    for (const [index, message] of fc.sample(foreign, { numRuns: ROUNDS, seed: 12 }).entries()) {
      await system.write(message)
      if (index % 20 === 0) await fake.server.publish('good', index)
    }
    await fake.server.publish('good', 'last')
    const good = () => client.received('message').flatMap(({ key, payload }) => (key === 'good' ? [payload] : []))
    await vi.waitFor(() => expect(good().at(-1)).toBe('"last"'))
    expect(good()).toEqual([...Array.from({ length: ROUNDS / 20 }, (_, index) => `${20 * index}`), '"last"'])
    expect(client.closure).toBeUndefined()
    const counts = fake.server.stats().refusedMessageCounts
    // With a log, Redis's PUBLISH is refused whatever its size.
    expect(counts[name === 'redis with a log' ? 'malformed' : 'too-large']).toBeGreaterThan(0)
    expect(client.received('gap').map(({ reason }) => reason)).toContain('refused')
    expect(failures).toEqual([])
  })

  it('that are larger than the limit of this node are a gap for their listeners, and close nobody', async () => {
    const system = await create(history)
    const [fake, larger] = [await startServer(system), await startServer(system, 1_000_000)]
    const [client, other] = [await fake.connect(), await fake.connect()]
    client.send({ verb: 'listen', id: 'l', pattern: 'a.#' })
    other.send({ verb: 'listen', id: 'l', pattern: 'other' })
    for (const { received } of [client, other].map((each) => ({ received: () => each.received('ok') })))
      await vi.waitFor(() => expect(received()).toHaveLength(1))
    const since = client.received('ok')[0]?.position
    await larger.server.publish('a.b', 'x'.repeat(900_000))
    await larger.server.publish('a.b', 'after')
    await larger.server.publish('other', 'after')
    for (const each of [client, other])
      await vi.waitFor(() => expect(each.received('message').map(({ payload }) => payload)).toEqual(['"after"']))
    expect(client.messages.slice(-2)).toMatchObject([
      { verb: 'gap', pattern: 'a.#', reason: 'refused' },
      { verb: 'message' },
    ])
    expect(other.received('gap')).toEqual([])
    expect([client.closure, other.closure]).toEqual([undefined, undefined])
    expect(fake.server.stats().refusedMessageCounts).toMatchObject({ 'too-large': 1 })
    const line = { level: 'warn', message: 'a message of the broker was refused' }
    expect(fake.log.filter(({ message }) => message === line.message)).toMatchObject([line])
    if (!hasLog || since === undefined) return
    for (const pattern of ['a.#', 'other']) {
      const late = await fake.connect()
      late.send({ verb: 'listen', id: 'late', pattern, since })
      await vi.waitFor(() => expect(late.received('message').map(({ payload }) => payload)).toEqual(['"after"']))
      const [ok] = late.received('ok')
      expect([ok?.gap, ok?.recovered]).toEqual(pattern === 'other' ? [undefined, true] : ['refused', undefined])
    }
  })
})
