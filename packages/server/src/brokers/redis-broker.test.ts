import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Broker, BrokerCapabilities, BrokerSink, BrokerStatus, OutboundMessage } from '../broker.js'
import { brokerSuite } from '../conformance/broker-suite.js'
import { type Service, sharedService, startRedis } from '../services/index.js'
import { createRedisBroker, type RedisBrokerOptions } from './redis-broker.js'

const CAPABILITIES: BrokerCapabilities = {
  history: false,
  ordered: true,
  confirms: true,
  queueGroups: false,
  durable: false,
  manyNodes: true,
}
const OPTIONS: Omit<RedisBrokerOptions, 'broker' | 'brokerNamespace'> = {
  brokerTimeoutMs: 5_000,
  brokerStartTimeoutMs: 5_000,
  brokerHeartbeatMs: 1_000,
  brokerMaxPendingBytes: 64 * 1_048_576,
  dedupeWindowMs: 60_000,
  dedupeMaxIds: 1_000,
}

let url = ''
let plain: Redis

beforeAll(async () => {
  url = (await sharedService('redis')).url
  plain = new Redis(url)
})
afterAll(async () => {
  await plain.quit()
})

let namespaceCount = 0

function freshNamespace(): string {
  return `test-${process.pid}-${namespaceCount++}`
}

/** Our connections, and what is subscribed under a namespace. */
async function residueOf(redis: Redis, namespace: string): Promise<string[]> {
  const clients = String(await redis.client('LIST'))
  return [
    ...clients.split('\n').filter((client) => /name=webmq-/.test(client) && client.includes(namespace)),
    ...((await redis.pubsub('CHANNELS', `${namespace}*`)) as string[]),
  ]
}

brokerSuite(
  'redis',
  () => {
    const brokerNamespace = freshNamespace()
    return {
      createNode: () => createRedisBroker({ ...OPTIONS, broker: url, brokerNamespace }),
      residue: () => residueOf(plain, brokerNamespace),
    }
  },
  CAPABILITIES,
)

interface Heard extends BrokerSink {
  readonly messages: { key: string; text: string; isBinary: boolean }[]
  readonly statuses: BrokerStatus[]
  readonly gaps: string[]
}

function createSink(): Heard {
  const messages: Heard['messages'] = []
  const statuses: BrokerStatus[] = []
  const gaps: string[] = []
  return {
    messages,
    statuses,
    gaps,
    deliver: ({ key, payload, isBinary }) => messages.push({ key, text: Buffer.from(payload).toString(), isBinary }),
    status: (status) => statuses.push(status),
    gap: (reason) => gaps.push(reason),
  }
}

async function startNode(options: Partial<RedisBrokerOptions> = {}) {
  const broker = createRedisBroker({ ...OPTIONS, broker: url, brokerNamespace: freshNamespace(), ...options })
  const sink = createSink()
  onTestFinished(() => broker.stop())
  await broker.start(sink)
  return { broker, sink }
}

function text(key: string, payload: string): OutboundMessage {
  return { key, payload: Buffer.from(payload), isBinary: false }
}

async function subscriptionsOf(redis: Redis, namespace: string): Promise<string[]> {
  const channels = (await redis.pubsub('CHANNELS', `${namespace}:*`)) as string[]
  return channels.map((channel) => channel.slice(namespace.length + 1)).sort()
}

describe('redis broker', () => {
  it('hears what plain clients publish, as text if it is JSON', async () => {
    const brokerNamespace = freshNamespace()
    const { broker, sink } = await startNode({ brokerNamespace })
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
    const { broker, sink } = await startNode({ brokerNamespace })
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
    const { broker, sink } = await startNode({ brokerNamespace })
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
    const { broker } = await startNode({ brokerNamespace })
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
    const { broker } = await startNode({ brokerNamespace })
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
    const { broker } = await startNode({ brokerNamespace })
    for (const pattern of ['a.b', 'a.c', 'a.*', 'a.*.d', 'a.#']) await broker.bind(pattern)
    await vi.waitFor(async () => expect(await subscriptionsOf(plain, brokerNamespace)).toEqual(['a']))
    expect(await plain.publish(`${brokerNamespace}:a.b`, '1')).toBe(1)
    await broker.unbind('a.#')
    await broker.unbind('a.*')
    await vi.waitFor(async () => expect(await subscriptionsOf(plain, brokerNamespace)).toEqual(['a.b', 'a.c']))
    expect(await plain.publish(`${brokerNamespace}:a.x.d`, '1')).toBe(1)
    expect(await plain.publish(`${brokerNamespace}:a.x`, '1')).toBe(0)
  })

  it('has one glob for many that begin alike, and delivers what was asked for', async () => {
    const brokerNamespace = freshNamespace()
    const { broker, sink } = await startNode({ brokerNamespace })
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
    expect(new Set(sink.messages.map(({ key }) => key))).toEqual(new Set(['room.7.x', 'room.0.end']))
  })

  it('names its two connections', async () => {
    const before = String(await plain.client('LIST')).match(/name=webmq-/g)?.length ?? 0
    await startNode()
    const names = String(await plain.client('LIST')).match(/name=webmq-[0-9a-f]{16} /g) ?? []
    expect(names.length).toBe(before + 2)
  })

  it('is lost when its subscribed connection is killed, tells a gap, and has its subscriptions again', async () => {
    const brokerNamespace = freshNamespace()
    const { broker, sink } = await startNode({ brokerNamespace })
    await broker.bind('a.#')
    const killed = String(await plain.call('CLIENT', 'LIST', 'TYPE', 'pubsub'))
      .split('\n')
      .find((client) => /name=webmq-/.test(client) && / psub=1 /.test(client))
    await plain.client('KILL', 'ID', /\bid=(\d+)/.exec(killed ?? '')?.[1] ?? '')
    await vi.waitFor(() => expect(sink.gaps).toEqual(['broker-lost']), { timeout: 5_000 })
    await broker.publish(text('a.b', '1'))
    await vi.waitFor(() => expect(sink.messages).toHaveLength(1))
    expect(sink.statuses).toEqual(['up', 'down', 'up'])
  })

  it.each([
    ['redis://h1,h2', 'several hosts'],
    ['redis+sentinel://h1,h2', 'name of the master'],
    ['redis+cluster://h1/1', 'database 0'],
    ['redis://h/x', 'database'],
    ['redis://h:99999', 'host and port'],
    ['redis://h?x=1', 'unknown parameter'],
    ['redis://:%zz@h', 'encoded'],
  ])('does not take %s', (broker, why) => {
    expect(() => createRedisBroker({ ...OPTIONS, broker, brokerNamespace: 'x' })).toThrow(why)
  })
})

describe('redis broker with a server of its own', () => {
  let service: Service
  let admin: Redis

  beforeAll(async () => {
    service = await startRedis({ isPrivate: true })
    admin = new Redis(service.url)
    await admin.config('SET', 'requirepass', 'open sesame')
  })
  afterAll(async () => {
    admin.disconnect()
    await service.stop()
  })

  const at = (credentials: string) => service.url.replace('redis://', `redis://${credentials}@`)

  const startError = async (broker: string, options: Partial<RedisBrokerOptions> = {}) => {
    const node: Broker = createRedisBroker({ ...OPTIONS, broker, brokerNamespace: freshNamespace(), ...options })
    try {
      await node.start(createSink())
    } catch (error) {
      return error as Error & { code: string }
    }
    await node.stop()
    throw new Error('it started')
  }

  it('starts with the password of its address', async () => {
    await startNode({ broker: at(':open%20sesame') })
    await startNode({ broker: at('default:open%20sesame') })
  })

  it.each([':wrong1', 'nobody:wrong1', ''])(
    'is refused at once with the credentials "%s", and names no password',
    async (credentials) => {
      const beganMs = performance.now()
      const error = await startError(credentials === '' ? service.url : at(credentials))
      expect(error.code).toBe('E_BROKER_REFUSED')
      expect(error.message).not.toContain('wrong1')
      expect(performance.now() - beganMs).toBeLessThan(2_000)
    },
  )

  it('is refused what its user may not do, and does the rest', async () => {
    await admin.call('ACL', 'SETUSER', 'limited', 'on', '>limited1', '+@all', 'resetchannels', '&lim[:/]*', '&lim:a.*')
    const { broker, sink } = await startNode({ broker: at('limited:limited1'), brokerNamespace: 'lim' })
    await broker.bind('a.*')
    await broker.bind('b')
    await broker.publish(text('a.b', '1'))
    await vi.waitFor(() => expect(sink.messages).toHaveLength(1))
    // Globs are only allowed when they are granted word for word.
    await expect(broker.bind('b.*')).rejects.toMatchObject({ code: 'E_BROKER_REFUSED' })
    const error = await startError(at('limited:limited1'), { brokerNamespace: 'other' })
    expect(error.code).toBe('E_BROKER_REFUSED')
  })

  it('does not publish to a replica', async () => {
    const replica = await startRedis({ isPrivate: true })
    onTestFinished(() => replica.stop())
    const plainReplica = new Redis(replica.url)
    onTestFinished(() => plainReplica.disconnect())
    await plainReplica.replicaof('127.0.0.1', '1')
    const error = await startError(replica.url, { brokerStartTimeoutMs: 1_500 })
    expect(error.code).toBe('E_BROKER_UNAVAILABLE')
    expect(error.message).toContain('replica')
  })

  it('leaves a server that becomes a replica', async () => {
    const own = await startRedis({ isPrivate: true })
    onTestFinished(() => own.stop())
    const { sink } = await startNode({ broker: own.url, brokerHeartbeatMs: 100 })
    const plainOwn = new Redis(own.url)
    onTestFinished(() => plainOwn.disconnect())
    await plainOwn.replicaof('127.0.0.1', '1')
    await vi.waitFor(() => expect(sink.statuses.at(-1)).toBe('down'))
    await plainOwn.replicaof('NO', 'ONE')
    await vi.waitFor(() => expect(sink.gaps).toEqual(['broker-lost']), { timeout: 10_000 })
  })

  it('tells a gap when Redis drops the node because it does not read fast enough', async () => {
    await admin.config('SET', 'client-output-buffer-limit', 'pubsub 65536 65536 1')
    onTestFinished(async () => {
      await admin.config('SET', 'client-output-buffer-limit', 'pubsub 33554432 8388608 60')
    })
    const brokerNamespace = freshNamespace()
    const { broker, sink } = await startNode({ broker: at(':open%20sesame'), brokerNamespace })
    await broker.bind('a')
    // One message that is larger than the limit: it is never read in time.
    const large = Buffer.alloc(8 * 1_048_576, '1')
    await admin.publish(`${brokerNamespace}:a`, large)
    await vi.waitFor(() => expect(sink.gaps).toEqual(['broker-lost']), { timeout: 10_000 })
    await admin.publish(`${brokerNamespace}:a`, '1')
    await vi.waitFor(() => expect(sink.messages.at(-1)?.text).toBe('1'))
  })
})
