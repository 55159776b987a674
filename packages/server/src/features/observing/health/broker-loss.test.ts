import { describe, expect, it, vi } from 'vitest'
import { WebMQError } from 'webmq-client/protocol'
import type { FakeClient } from 'webmq-conformance'
import { FakeServer } from '../../../../test/fake-server.js'
import { FaultyBroker, type FaultyBrokerOptions } from '../../../../test/faulty-broker.js'
import type { ServerOptions } from '../../../doors/options/server-options.js'

async function started(options: ServerOptions = {}, brokerOptions: FaultyBrokerOptions = {}) {
  const broker = new FaultyBroker(brokerOptions)
  const fake = await FakeServer.start(options, { broker })
  return { broker, fake }
}

const verbs = (client: FakeClient) =>
  client.messages.map((message) =>
    message.verb === 'message'
      ? `message ${message.payload}`
      : message.verb === 'gap'
        ? `gap ${message.pattern} ${message.reason}`
        : `${message.verb} ${'id' in message ? message.id : ''}`,
  )

describe('a node that loses its broker', () => {
  it('keeps its connections, and tells everyone who listens of the gap before the next message', async () => {
    const { broker, fake } = await started()
    const one = await fake.listener('a.*', 'b')
    const other = await fake.listener('a.#')
    const idle = await fake.connect()
    idle.clear()
    broker.deliver('a.1', 1)
    broker.lose()
    broker.deliver('a.1', 'missed')
    broker.recover()
    broker.deliver('a.1', 2)
    await fake.settled()
    expect(verbs(one)).toEqual(['message 1', 'gap a.* broker-lost', 'gap b broker-lost', 'message 2'])
    expect(verbs(other)).toEqual(['message 1', 'gap a.# broker-lost', 'message 2'])
    expect(idle.messages).toEqual([])
    expect([one, other, idle].map(({ closure }) => closure)).toEqual([undefined, undefined, undefined])
    expect(fake.server.stats()).toMatchObject({
      gapCounts: { 'broker-lost': 3 },
      broker: { status: 'up', lostCount: 1 },
    })
  })

  it('tells the process: status, gap, and the handlers that listen in it, in order', async () => {
    const broker = new FaultyBroker()
    const fake = new FakeServer({}, { broker })
    const events: unknown[] = []
    const heard: unknown[] = []
    fake.server.on('broker', (change) => events.push(change))
    const off = fake.server.on('gap', (gap) => events.push(gap))
    fake.server.on('gap', () => {
      throw new Error('of the application')
    })
    await fake.server.start()
    await fake.server.listen('a', (payload) => heard.push(payload), { onGap: (gap) => heard.push(gap) }).ready
    const cause = new Error('ECONNRESET')
    broker.deliver('a', 1)
    broker.lose(cause)
    broker.recover()
    broker.deliver('a', 2)
    await vi.waitFor(() => expect(heard).toEqual([1, { pattern: 'a', reason: 'broker-lost' }, 2]))
    expect(events).toEqual([
      { status: 'up', previous: 'down' },
      { status: 'down', previous: 'up', reason: 'ECONNRESET', cause },
      { reason: 'broker-lost' },
      { status: 'up', previous: 'down' },
    ])
    expect(fake.log.filter(({ level }) => level === 'error')).toMatchObject([{ fields: { event: 'gap' } }])
    off()
    broker.lose()
    broker.recover()
    await vi.waitFor(() => expect(events).toHaveLength(6))
    await fake.server.stop()
    expect(events).toHaveLength(6)
  })

  it('logs it in two lines, however many messages there are', async () => {
    const { broker, fake } = await started()
    const client = await fake.listener('a')
    broker.lose(new Error('ECONNRESET'))
    for (let index = 0; index < 50; index++) client.send({ verb: 'publish', key: 'a', echo: true, payload: `${index}` })
    await fake.settled()
    broker.recover()
    await fake.settled()
    const lines = fake.log.filter(({ message = '' }) => message.includes('broker'))
    expect(lines.map(({ level, message }) => [level, message])).toEqual([
      ['info', 'the broker is up'],
      ['warn', 'the broker is lost; publishes wait'],
      ['info', 'the broker is back'],
    ])
    expect(lines[2]?.fields).toMatchObject({ waitingPublishes: 50 })
  })
})

describe('a listen while the broker is away', () => {
  it('is answered when the broker is back, and misses nothing from then on', async () => {
    const { broker, fake } = await started()
    broker.lose()
    const client = await fake.connect()
    client.clear()
    client.send({ verb: 'listen', id: 'l', pattern: 'a' })
    client.sendRaw('ping')
    await fake.settled()
    expect(verbs(client)).toEqual(['pong '])
    broker.recover()
    await fake.settled()
    broker.deliver('a', 1)
    await fake.settled()
    expect(verbs(client)).toEqual(['pong ', 'ok l', 'message 1'])
  })

  it('is refused after a time, so that it may be tried again, and leaves nothing bound', async () => {
    const { broker, fake } = await started({}, { timeoutMs: 20 })
    broker.lose()
    const client = await fake.connect()
    client.clear()
    client.send({ verb: 'listen', id: 'l', pattern: 'a' })
    await vi.waitFor(() =>
      expect(client.messages).toMatchObject([{ id: 'l', code: 'E_BROKER_UNAVAILABLE', retryable: true }]),
    )
    broker.recover()
    await fake.settled()
    expect(broker.patterns).toEqual([])
    expect(fake.server.stats()).toMatchObject({ patternCount: 0, refusedCounts: { E_BROKER_UNAVAILABLE: 1 } })
    client.send({ verb: 'listen', id: 'again', pattern: 'a' })
    await fake.settled()
    expect(client.received('ok')).toMatchObject([{ id: 'again' }])
    expect(broker.patterns).toEqual(['a'])
  })

  it('with a pattern that the node is bound to is answered at once, and told of the gap with the others', async () => {
    const { broker, fake } = await started()
    await fake.listener('a')
    broker.lose()
    const late = await fake.connect()
    late.clear()
    late.send({ verb: 'listen', id: 'l', pattern: 'a' })
    await fake.settled()
    expect(verbs(late)).toEqual(['ok l'])
    broker.recover()
    broker.deliver('a', 1)
    await fake.settled()
    expect(verbs(late)).toEqual(['ok l', 'gap a broker-lost', 'message 1'])
  })

  it('leaves nothing bound when the connection goes meanwhile', async () => {
    const { broker, fake } = await started()
    broker.lose()
    const client = await fake.connect()
    client.send({ verb: 'listen', id: 'l', pattern: 'a' })
    client.send({ verb: 'unlisten', id: 'u', pattern: 'a' })
    const stays = await fake.connect()
    stays.send({ verb: 'listen', id: 'l', pattern: 'b' })
    stays.send({ verb: 'unlisten', id: 'u', pattern: 'b' })
    stays.send({ verb: 'listen', id: 'l2', pattern: 'b' })
    await fake.settled()
    client.drop()
    broker.recover()
    await fake.settled()
    await vi.waitFor(() => expect(broker.patterns).toEqual(['b']))
    expect(fake.server.stats().patternCount).toBe(1)
    expect(stays.received('ok').map(({ id }) => id)).toEqual(['l', 'u', 'l2'])
  })

  it('of the process itself fails after a time, and can be made again', async () => {
    const { broker, fake } = await started({}, { timeoutMs: 20 })
    broker.lose()
    await expect(fake.server.listen('a', vi.fn()).ready).rejects.toMatchObject({ code: 'E_BROKER_UNAVAILABLE' })
    broker.recover()
    await fake.server.listen('a', vi.fn()).ready
    expect(broker.patterns).toEqual(['a'])
  })
})

describe('publishes while the broker is away', () => {
  it('wait, hold up nothing else of their connection, and keep their order', async () => {
    const { broker, fake } = await started()
    const listener = await fake.listener('k.#')
    const client = await fake.listener('known')
    broker.lose()
    for (let index = 0; index < 20; index++)
      client.send({ verb: 'publish', id: `p${index}`, key: `k.${index % 2}`, echo: true, payload: `${index}` })
    client.send({ verb: 'unlisten', id: 'u', pattern: 'known' })
    client.sendRaw('ping')
    await fake.settled()
    expect(verbs(client)).toEqual(['ok u', 'pong '])
    expect(fake.server.stats().broker.pendingCount).toBe(20)
    client.clear()
    broker.recover()
    await fake.settled()
    const numbers = Array.from({ length: 20 }, (_, index) => index)
    expect(client.received('ok').map(({ id }) => id)).toEqual(numbers.map((index) => `p${index}`))
    expect(listener.received('message').map(({ payload }) => Number(payload))).toEqual(numbers)
    expect(fake.server.stats().broker).toMatchObject({ pendingCount: 0, acceptedCount: 20 })
  })

  it('are refused after a time, those without an id too, and counted', async () => {
    const { broker, fake } = await started({}, { timeoutMs: 20 })
    broker.lose()
    const client = await fake.connect()
    client.clear()
    client.send({ verb: 'publish', id: 'p', key: 'k', echo: true, payload: '1' })
    client.send({ verb: 'publish', key: 'k', echo: true, payload: '2' })
    await vi.waitFor(() => expect(client.messages).toHaveLength(2))
    expect(client.received('error')).toMatchObject([
      { id: 'p', code: 'E_BROKER_UNAVAILABLE', retryable: true },
      { code: 'E_BROKER_UNAVAILABLE', retryable: true },
    ])
    expect(fake.server.stats()).toMatchObject({
      refusedCounts: { E_BROKER_UNAVAILABLE: 2 },
      broker: { rejectedCount: 2, pendingCount: 0 },
    })
  })

  it('of one connection may not use up what may wait for all', async () => {
    const { broker, fake } = await started({ brokerMaxPendingBytes: 65_536, maxPayloadBytes: 1_000 })
    broker.lose()
    const [greedy, modest] = [await fake.connect(), await fake.connect()]
    for (const client of [greedy, modest]) client.clear()
    const send = (client: FakeClient, id: string) =>
      client.send({ verb: 'publish', id, key: 'k', echo: true, payload: JSON.stringify('x'.repeat(766)) })
    // Each costs 768 bytes and 256 for the rest: an eighth of 64 KiB is eight of them.
    for (let index = 1; index <= 9; index++) send(greedy, `g${index}`)
    send(modest, 'm1')
    await fake.settled()
    expect(greedy.messages).toMatchObject([{ verb: 'error', id: 'g9', code: 'E_BROKER_UNAVAILABLE' }])
    expect(modest.messages).toEqual([])
    broker.recover()
    await fake.settled()
    expect(greedy.received('ok')).toHaveLength(8)
    expect(modest.received('ok')).toHaveLength(1)
    broker.lose()
    send(greedy, 'again')
    await fake.settled()
    broker.recover()
    await fake.settled()
    expect(greedy.received('ok').at(-1)).toMatchObject({ id: 'again' })
  })

  it('tell clients nothing of what the library of the broker says', async () => {
    const { broker, fake } = await started()
    const client = await fake.connect()
    client.clear()
    const cause = new Error('connect ECONNREFUSED 10.0.0.5:5672')
    const refusals = [
      new WebMQError('E_BROKER_UNAVAILABLE', { detail: cause.message, cause }),
      new WebMQError('E_BROKER_REFUSED', { detail: cause.message, cause }),
    ]
    for (const refusal of refusals) {
      vi.spyOn(broker, 'publish').mockRejectedValueOnce(refusal)
      client.send({ verb: 'publish', id: 'p', key: 'k', echo: true, payload: '1' })
    }
    await fake.settled()
    expect(client.received('error').map(({ code, retryable }) => [code, retryable])).toEqual([
      ['E_BROKER_UNAVAILABLE', true],
      ['E_UNSUPPORTED', false],
    ])
    expect(JSON.stringify(client.messages)).not.toContain('10.0.0.5')
    expect(fake.log.filter(({ level }) => level === 'error').map(({ fields }) => fields)).toMatchObject([
      { err: refusals[1] },
    ])
  })
})

describe('a node whose broker is away when it stops or starts', () => {
  it('stops within its bounds, with everything answered that waited', async () => {
    const { broker, fake } = await started({ closeTimeoutMs: 50 })
    const client = await fake.connect()
    client.clear()
    broker.lose()
    client.send({ verb: 'publish', id: 'p', key: 'k', echo: true, payload: '1' })
    client.send({ verb: 'listen', id: 'l', pattern: 'a' })
    const ofProcess = expect(fake.server.publish('k', 1)).rejects.toMatchObject({ code: 'E_BROKER_UNAVAILABLE' })
    await fake.settled()
    const startedMs = performance.now()
    await fake.server.stop({ drainMs: 100 })
    expect(performance.now() - startedMs).toBeLessThan(10_000)
    expect(client.closure?.code).toBe(4001)
    expect(broker.isStopped).toBe(true)
    await ofProcess
  })

  it('does not start when the broker is not there, and leaves nothing running', async () => {
    const broker = new FaultyBroker({ isAway: true, timeoutMs: 20 })
    const fake = new FakeServer({}, { broker })
    const stopped = vi.spyOn(fake.transport, 'stop')
    await expect(fake.server.start()).rejects.toMatchObject({ code: 'E_BROKER_UNAVAILABLE' })
    expect(broker.isStopped).toBe(true)
    expect(stopped).toHaveBeenCalled()
    await expect(fake.server.start()).rejects.toMatchObject({ code: 'E_NOT_RUNNING' })
    await fake.server.stop()
  })

  it('gives up waiting for the broker when it is stopped', async () => {
    const broker = new FaultyBroker({ isAway: true })
    const fake = new FakeServer({}, { broker })
    const starting = expect(fake.server.start()).rejects.toMatchObject({ code: 'E_NOT_RUNNING' })
    await vi.waitFor(() => expect(broker.waitingCount).toBe(1))
    await fake.server.stop()
    await starting
    expect(broker.isStopped).toBe(true)
    expect(fake.server.address).toBeUndefined()
  })

  it('gives up when it is stopped before it has got as far as the broker', async () => {
    const broker = new FaultyBroker({ isAway: true })
    const fake = new FakeServer({}, { broker })
    const starting = expect(fake.server.start()).rejects.toMatchObject({ code: 'E_NOT_RUNNING' })
    await fake.server.stop()
    await starting
  })

  it('hides the password of its broker in the error that ends the start', async () => {
    const broker = new FaultyBroker()
    const fake = new FakeServer({ broker: 'amqp://user:sesame@host' }, { broker })
    const cause = new Error('ACCESS_REFUSED amqp://user:sesame@host')
    vi.spyOn(broker, 'start').mockRejectedValueOnce(
      new WebMQError('E_BROKER_REFUSED', { detail: cause.message, cause }),
    )
    const error: unknown = await fake.server.start().catch((error: unknown) => error)
    expect(error).toMatchObject({ code: 'E_BROKER_REFUSED', message: expect.stringContaining('amqp://user:***@host') })
    expect(Object(error).cause).toBeUndefined()
  })
})
