import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { createRabbitmqBroker } from 'webmq-broker-rabbitmq'
import { historyOf } from 'webmq-conformance'
import { type SharedRabbitmq, sharedService, startRabbitmq } from 'webmq-services'
import { startBackend } from './amqp-backend.js'
import { newNamespace, nodeOptions, publishText, startNode } from './rabbitmq-node.js'

let service: SharedRabbitmq

beforeAll(async () => {
  service = await sharedService('rabbitmq')
})

describe('rabbitmq that says no', () => {
  const startError = async (broker: string, namespace = newNamespace()) => {
    const node = await createRabbitmqBroker(nodeOptions(broker, namespace))
    onTestFinished(() => node.stop())
    return await Promise.resolve(
      node.start({ deliver: () => true, status: () => undefined, gap: () => undefined, refused: () => undefined }),
    ).then(
      () => 'started',
      (error: unknown) => error,
    )
  }
  const withUser = (user: string, path = '') => `${service.url.replace(/\/\/.*@/, `//${user}@`)}${path}`

  it('refuses wrong credentials at once, and no message tells the password', async () => {
    const error = await startError(withUser('guest:s3cr3t%2F'))
    expect(error).toMatchObject({ code: 'E_BROKER_REFUSED', message: expect.stringContaining('ACCESS_REFUSED') })
    expect(JSON.stringify([error, String(error), String((error as Error).cause)])).not.toContain('s3cr3t')
  })

  it('refuses a virtual host that does not exist', async () => {
    expect(await startError(withUser('guest:guest', '/nowhere'))).toMatchObject({
      code: 'E_BROKER_REFUSED',
      message: expect.stringContaining('virtual host'),
    })
  })

  it('refuses an exchange of another type', async () => {
    const namespace = newNamespace()
    const channel = await startBackend(service.url)
    await channel.assertExchange(namespace, 'fanout')
    onTestFinished(async () => void (await channel.deleteExchange(namespace)))
    expect(await startError(service.url, namespace)).toMatchObject({
      code: 'E_BROKER_REFUSED',
      message: expect.stringContaining('PRECONDITION_FAILED'),
    })
  })

  it('tries again when nobody listens there', async () => {
    expect(await startError('amqp://127.0.0.1:1')).toMatchObject({
      code: 'E_BROKER_UNAVAILABLE',
      message: expect.stringContaining('ECONNREFUSED'),
    })
  })

  it('takes the virtual host and the user of the address, and the first host that answers', async () => {
    await service.ctl('add_vhost', 'a/b c')
    await service.ctl('add_user', 'node user', 'p@ss:/word')
    await service.ctl('set_permissions', '-p', 'a/b c', 'node user', '^here', '^(here|amq\\.default)', '^here')
    const { host } = new URL(service.url)
    const broker = `amqp://node%20user:p%40ss%3A%2Fword@127.0.0.1:1,${host}/a%2Fb%20c`
    const { broker: node, received } = await startNode(nodeOptions(broker, 'here'))
    await node.bind('a')
    await publishText(node, 'a', '1')
    await vi.waitFor(() => expect(received).toHaveLength(1))
    const connections = (await service.ctl('list_connections', 'user', 'vhost')).split('\n')
    expect(connections.filter((line) => line === 'node user\ta/b c')).toHaveLength(2)
    expect(await startError(broker.replace('127.0.0.1:1,', ''), 'elsewhere')).toMatchObject({
      code: 'E_BROKER_REFUSED',
    })
  })

  it('needs no more rights than the docs name, also for a log, and where queues are quorum queues by default', async () => {
    const name = newNamespace()
    await service.ctl('add_vhost', name, '--default-queue-type', 'quorum')
    await service.ctl('add_user', name, 'password')
    await service.ctl('set_permissions', '-p', name, name, `^${name}`, `^(${name}|amq\\.default)`, `^${name}`)
    const options = { ...historyOf('log.#=100'), brokerHeartbeatMs: 200 }
    const { broker, received, events } = await startNode(
      nodeOptions(withUser(`${name}:password`, `/${name}`), name, options),
    )
    await broker.bind('#')
    for (const key of ['log.1', 'other.1']) await publishText(broker, key, '1')
    await vi.waitFor(() => expect(received).toHaveLength(2))
    // It takes a second, in which the node looks for its exchange and its queue.
    const rows = (await service.ctl('list_queues', '-p', name, 'name', 'type')).trim().split('\n')
    const types = rows.map((row) => row.split('\t').at(-1)).sort()
    expect(types).toEqual(['classic', 'classic', 'classic', 'classic', 'stream'])
    expect(events).toEqual(['up'])
  })

  it('refuses a pattern that topic permissions forbid, and that one alone', async () => {
    const namespace = newNamespace()
    // RabbitMQ 4.3 sets no permission on an exchange that is not there.
    await (await startBackend(service.url)).assertExchange(namespace, 'topic')
    await service.ctl('add_user', 'narrow', 'narrow')
    await service.ctl('set_permissions', 'narrow', '.*', '.*', '.*')
    await service.ctl('set_topic_permissions', 'narrow', namespace, '.*', '^(open|\\$webmq)')
    const { broker, received, events } = await startNode(nodeOptions(withUser('narrow:narrow'), namespace))
    const patterns = ['open.1', 'closed.1', 'open.2', 'closed.2', 'open.3']
    const results = await Promise.allSettled(patterns.map((pattern) => broker.bind(pattern)))
    expect(results.map((result) => (result.status === 'rejected' ? result.reason.code : result.status))).toEqual([
      'fulfilled',
      'E_BROKER_REFUSED',
      'fulfilled',
      'E_BROKER_REFUSED',
      'fulfilled',
    ])
    for (const pattern of patterns) await publishText(broker, pattern, '1')
    await broker.bind('open.4')
    await publishText(broker, 'open.4', '1')
    await vi.waitFor(() => expect(received.map(({ key }) => key)).toEqual(['open.1', 'open.2', 'open.3', 'open.4']))
    expect(events).toEqual(['up'])
  })

  it('rejects the publish that a full queue of somebody else rejects', async () => {
    const namespace = newNamespace()
    const { broker } = await startNode(nodeOptions(service.url, namespace))
    const channel = await startBackend(service.url)
    const { queue } = await channel.assertQueue('', { exclusive: true, maxLength: 1, overflow: 'reject-publish' })
    await channel.bindQueue(queue, namespace, 'full.#')
    const results = await Promise.allSettled(
      ['full.1', 'other.1', 'full.2', 'full.3', 'other.2'].map((key) => publishText(broker, key, '1')),
    )
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'rejected', 'fulfilled'])
    expect(results[2]).toMatchObject({ reason: { code: 'E_BROKER_UNAVAILABLE' } })
    expect(broker.stats()).toMatchObject({ acceptedCount: 3, rejectedCount: 2, pendingCount: 0, lostCount: 0 })
  })

  // Symptom: one message of a client took the link of its node again and again, and the client sent it again. Cause: RabbitMQ closes
  // the channel of a message that is too large, and each next link was given the same one.
  it('refuses what is larger than it takes for good, and loses the link once to learn that', {
    timeout: 120_000,
  }, async () => {
    const small = await startRabbitmq({ config: 'max_message_size = 65536' })
    onTestFinished(() => small.stop())
    const options = nodeOptions(small.url, newNamespace(), historyOf('log.#=100'))
    const { broker, received, events } = await startNode(options)
    await broker.bind('#')
    const publish = async (key: string, bytes: number) =>
      await broker.publish({ key, payload: new Uint8Array(bytes), isBinary: true })
    const tooLarge = { code: 'E_PAYLOAD_TOO_LARGE', retryable: false, message: expect.stringContaining('65536') }
    for (const key of ['a', 'log.a', 'a']) await expect(publish(key, 65_537)).rejects.toMatchObject(tooLarge)
    expect(broker.stats().lostCount).toBe(1)
    for (const key of ['a', 'log.a']) await publish(key, 65_536)
    await vi.waitFor(() => expect(received).toHaveLength(2))
    expect(events).toEqual(['up', expect.stringContaining('down'), expect.stringContaining('gap'), 'up'])
  })
})
