import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createNatsBroker } from 'webmq-broker-nats'
import { createRabbitmqBroker } from 'webmq-broker-rabbitmq'
import { createRedisBroker } from 'webmq-broker-redis'
import { historyOf } from 'webmq-conformance'
import { type RedisOptions, type SharedRabbitmq, sharedService, startRedis } from 'webmq-services'
import type { Broker } from '../../src/kernel/ports/broker.js'
import { FakeServer } from '../fake-server.js'
import { askJetStream, freshNamespace } from './nats-node.js'
import { nodeOptions } from './rabbitmq-node.js'
import { OPTIONS } from './redis-node.js'

const LOGGED = historyOf('#=1000')
const WARNING = { warning: 'unsynced-log' }

/** What a node with this broker says of its log at its start: texts of warnings, or that the broker does not tell. */
async function saidOf(broker: Broker): Promise<readonly string[]> {
  const fake = new FakeServer({}, { broker })
  onTestFinished(() => fake.server.stop())
  await fake.server.start()
  // The node asks the same at its start, and was answered before.
  await broker.log?.risk().catch(() => undefined)
  await new Promise(setImmediate)
  return fake.log.flatMap(({ level, fields, message = '' }) => {
    if ('warning' in fields) expect(fields).toMatchObject({ ...WARNING, broker: broker.name })
    if ('warning' in fields) expect(level).toBe('warn')
    return 'warning' in fields || message.includes('how safe its log is') ? [message] : []
  })
}

function redisAt(url: string, history = LOGGED): Broker {
  return createRedisBroker({ ...OPTIONS, ...history, broker: url, brokerNamespace: freshNamespace() })
}

async function privateRedis(args: RedisOptions['args'] = []): Promise<string> {
  const service = await startRedis({ args, isPrivate: true })
  onTestFinished(() => service.stop())
  return service.url
}

describe('a node with a log in Redis', () => {
  const appendOnly = (policy: string) => ['--appendonly', 'yes', '--appendfsync', policy]

  it.each([
    [['--appendonly', 'no'], 'the log may lose its end: appendonly is no: a Redis that is killed'],
    [
      appendOnly('everysec'),
      'the log may lose its end: appendfsync is everysec: a Redis whose machine fails loses the last',
    ],
    [
      appendOnly('no'),
      'the log may lose its end: appendfsync is no: a Redis whose machine fails loses what the system',
    ],
  ])('warns of %j', async (args, text) => {
    expect(await saidOf(await redisAt(await privateRedis(args)))).toEqual([expect.stringContaining(text)])
  })

  it('has nothing to say when each write is synced, nor without a log', async () => {
    expect(await saidOf(await redisAt(await privateRedis(appendOnly('always'))))).toEqual([])
    expect(await saidOf(await redisAt(await privateRedis(), historyOf()))).toEqual([])
  })

  it('starts when its user may not ask for the configuration, and warns of what INFO shows', async () => {
    for (const [args, said] of [
      [appendOnly('everysec'), 'the broker does not tell how safe its log is'],
      [[], 'the log may lose its end: appendonly is no'],
    ] as const) {
      const url = await privateRedis(args)
      const admin = new Redis(url)
      await admin.acl('SETUSER', 'node', 'on', '>secret', '~*', '&*', '+@all', '-config')
      admin.disconnect()
      const address = new URL(url)
      Object.assign(address, { username: 'node', password: 'secret' })
      expect(await saidOf(await redisAt(address.href))).toEqual([expect.stringContaining(said)])
    }
  })
})

it('a node without history says so when it may not tell at Redis that it logs nothing', async () => {
  const url = await privateRedis()
  const admin = new Redis(url)
  await admin.acl('SETUSER', 'node', 'on', '>secret', '~*', '&*', '+@all', '-hdel')
  admin.disconnect()
  const address = Object.assign(new URL(url), { username: 'node', password: 'secret' })
  const said = await saidOf(await redisAt(address.href, historyOf()))
  expect(said).toEqual([expect.stringContaining('this node logs nothing and cannot note that there')])
})

describe('a node with a log in NATS', () => {
  const start = async (history = LOGGED) => {
    const { url } = await sharedService('nats')
    const brokerNamespace = freshNamespace()
    onTestFinished(async () => {
      await askJetStream({ url }, `STREAM.DELETE.${brokerNamespace}-log`)
    })
    return saidOf(
      await createNatsBroker({ ...OPTIONS, ...history, broker: url, brokerNamespace, maxPayloadBytes: 65_536 }),
    )
  }

  it('warns of a stream with one replica', async () => {
    expect(await start()).toEqual([
      expect.stringMatching(/^the log may lose its end: the stream \S+-log has one replica:/),
    ])
  })

  it('has nothing to say without a log', async () => {
    expect(await start(historyOf())).toEqual([])
  })
})

describe('a node with a log in RabbitMQ', () => {
  const start = async (hosts: (host: string) => string, history = LOGGED) => {
    const { url } = await sharedService('rabbitmq')
    const { host } = new URL(url)
    return saidOf(await createRabbitmqBroker(nodeOptions(url.replace(host, hosts(host)), freshNamespace(), history)))
  }

  it('warns when its address names one server, for AMQP does not tell of replicas', async () => {
    const text = /^the log may lose its end: the address names one server: unless the stream \S+\.log has replicas/
    expect(await start((host) => host)).toEqual([expect.stringMatching(text)])
  })

  it('warns when its user may not declare the queue that tells of restarts, and starts again and again', async () => {
    const service = await sharedService('rabbitmq')
    const { url, namespace, close } = await restrictedUser(service)
    onTestFinished(close)
    for (let round = 0; round < 2; round++) {
      const broker = await createRabbitmqBroker(nodeOptions(url, namespace, LOGGED))
      const [text, ...others] = await saidOf(broker)
      expect(text).toMatch(/; no restart of RabbitMQ is seen that no node outlives: .*ACCESS_REFUSED/)
      expect(others).toEqual([])
    }
  })

  it('has nothing to say when the address is that of a cluster, nor without a log', async () => {
    expect(await start((host) => `${host},${host}`)).toEqual([])
    expect(await start((host) => host, historyOf())).toEqual([])
  })
})

/** It may declare the exchange, the log and queues of nodes, and no other queue. */
async function restrictedUser({ ctl, url }: SharedRabbitmq) {
  const namespace = freshNamespace()
  await ctl('add_user', namespace, 'secret')
  await ctl('set_permissions', namespace, `^${namespace}($|\\.log$|\\.node)`, '.*', '.*')
  const close = async () => void (await ctl('delete_user', namespace))
  return { url: url.replace(/\/\/.*@/, `//${namespace}:secret@`), namespace, close }
}
