import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { createRedisBroker } from 'webmq-broker-redis'
import { historyOf, messageIdOf } from 'webmq-conformance'
import { type Service, startRedis } from 'webmq-services'
import type { AddressedBrokerOptions } from '../../src/adapters/brokers/remote/options.js'
import { createServer } from '../../src/create-server.js'
import type { Broker } from '../../src/kernel/ports/broker.js'
import { recordingLogger } from '../fake-server.js'
import { createSink, freshNamespace, OPTIONS, startNode, text } from './redis-node.js'

describe('address of a redis broker', () => {
  it.each([
    ['redis://h1,h2', 'several hosts'],
    ['redis+sentinel://h1,h2', 'name of the master'],
    ['redis+cluster://h1/1', 'database 0'],
    ['redis://h/x', 'database'],
    ['redis://h:99999', 'host and port'],
    ['rediss://h?x=1', 'unknown parameter'],
    ['redis://h?ca=file', 'unknown parameter'],
    ['rediss+cluster://h?sentinelPassword=x', 'unknown parameter'],
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

  const startError = async (broker: string, options: Partial<AddressedBrokerOptions> = {}) => {
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
      expect(performance.now() - beganMs).toBeLessThan(10_000)
    },
  )

  // Symptom: a node whose password was changed at Redis tried the old one until its next start, and its log did not say why.
  it('says that its password was changed, and connects with the one that a reload brings', async () => {
    const rules = ['on', 'allkeys', 'allchannels', '+@all']
    await admin.call('ACL', 'SETUSER', 'rotating', 'resetpass', '>old-password', ...rules)
    const { logger, lines } = recordingLogger()
    const options = { port: 0, transport: 'ws', logger, brokerNamespace: freshNamespace() } as const
    const server = createServer({ ...options, broker: at('rotating:old-password') })
    onTestFinished(() => server.stop({ drainMs: 0 }))
    await server.start()
    await admin.call('ACL', 'SETUSER', 'rotating', 'resetpass', '>new-password')
    await admin.call('CLIENT', 'KILL', 'USER', 'rotating')
    const told = (text: string) => lines.filter(({ message = '' }) => message.includes(text))
    await vi.waitFor(() => expect(told('the broker refuses this node')).toHaveLength(1))
    expect(() => server.reload({ ...options, broker: at('rotating:%zz') })).toThrow('encoded')
    server.reload({ ...options, broker: at('rotating:new-password') })
    await vi.waitFor(() => expect(server.stats().broker.status).toBe('up'))
    expect(JSON.stringify(lines)).not.toMatch(/(?:old|new)-password/)
  })

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

  it('keeps a log with no more permissions than the documentation says', async () => {
    const most = '+publish +subscribe +unsubscribe +psubscribe +punsubscribe +client|setname'
    const log = '+info +script|load +evalsha +xadd +xtrim +xrange +hmget +hset +hget +hsetnx +hlen +exists +del +unlink'
    const more = '+rename +pexpire +rpush +lindex +lpop +time'
    const rules = `on >log1 ${most} ${log} ${more} resetchannels &log[:/]* resetkeys ~log/log*`
    await admin.call('ACL', 'SETUSER', 'logging', ...rules.split(' '))
    // So little that everything is trimmed and forgotten at once.
    const bounds = { historyMaxBytes: 100, dedupeMaxIds: 1 }
    const options = { broker: at('logging:log1'), brokerNamespace: 'log', ...historyOf('#=1000'), ...bounds }
    const { broker, sink } = await startNode(options)
    await broker.bind('a')
    for (let id = 0; id < 20; id++) await broker.publish(text('a', `${id}`, { messageId: messageIdOf(`${id}`) }))
    await vi.waitFor(() => expect(sink.messages).toHaveLength(20))
    expect(await admin.xlen('log/log')).toBeLessThan(10)
    expect(await admin.exists('log/log/ids-before', 'log/log/checkpoints')).toBe(2)
    await admin.call('ACL', 'SETUSER', 'logging', '-info')
    // A restart of the server would go unnoticed, and with it a lost end of the log.
    expect((await startError(options.broker, options)).code).toBe('E_BROKER_REFUSED')
    await admin.call('ACL', 'SETUSER', 'logging', '+info')
    expect(await (await startNode(options)).broker.position()).toEqual(await broker.position())
    await admin.call('ACL', 'SETUSER', 'logging', '-xadd')
    await expect(broker.publish(text('a', '3'))).rejects.toMatchObject({ code: 'E_BROKER_UNAVAILABLE' })
    await admin.call('ACL', 'SETUSER', 'logging', '-evalsha')
    expect((await startError(options.broker, options)).code).toBe('E_BROKER_REFUSED')
  })

  it('works with a Redis that knows no RESP 3', async () => {
    const old = await startRedis({ args: ['--rename-command', 'HELLO', ''] })
    onTestFinished(() => old.stop())
    const plainOld = new Redis(old.url)
    onTestFinished(() => plainOld.disconnect())
    let beatCount = 0
    plainOld.on('pmessage', () => beatCount++)
    await plainOld.psubscribe('*/*')
    const { broker, sink } = await startNode({ broker: old.url, brokerHeartbeatMs: 50 }, (key) => key !== 'a.y')
    for (const pattern of ['a.*', 'a.b', 'c']) await broker.bind(pattern)
    for (const key of ['a.b', 'c', 'a.x']) await broker.publish(text(key, key))
    await vi.waitFor(() => expect(sink.messages).toHaveLength(3))
    await broker.unbind('a.*')
    await broker.publish(text('a.y', 'unwanted'))
    await broker.publish(text('a.b', 'end'))
    await vi.waitFor(() => expect(sink.messages.map(({ text }) => text)).toEqual(['a.b', 'c', 'a.x', 'end']))
    await vi.waitFor(() => expect(beatCount).toBeGreaterThan(5))
    expect(sink.gaps).toEqual([])
  })

  it('does not publish to a replica', async () => {
    const replica = await startRedis({ isPrivate: true })
    onTestFinished(() => replica.stop())
    const plainReplica = new Redis(replica.url)
    onTestFinished(() => plainReplica.disconnect())
    await plainReplica.replicaof('127.0.0.1', '1')
    const error = await startError(replica.url, { brokerStartTimeoutMs: 5_000 })
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
    await vi.waitFor(() => expect(sink.gaps).toEqual(['broker-lost']))
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
    await vi.waitFor(() => expect(sink.gaps).toEqual(['broker-lost']))
    await admin.publish(`${brokerNamespace}:a`, '1')
    await vi.waitFor(() => expect(sink.messages.at(-1)?.text).toBe('1'))
  })
})
