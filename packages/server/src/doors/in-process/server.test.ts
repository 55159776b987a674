import { afterEach, describe, expect, it, vi } from 'vitest'
import { FakeServer } from '../../../test/fake-server.js'
import { FaultyBroker } from '../../../test/faulty-broker.js'
import { memoryOptions } from '../../../test/memory-options.js'
import { SlowBroker } from '../../../test/slow-broker.js'
import { MemoryBroker } from '../../adapters/brokers/memory/broker.js'
import { drainSpreadMs } from '../../kernel/node/drain.js'
import { HttpFrontend } from '../http/frontend.js'

afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

describe('a connection', () => {
  it('is welcomed with what it may do', async () => {
    const work = { workPerSecond: 2_000, workBurst: 3_000 }
    const limits = {
      maxPayloadBytes: 1_000,
      maxListensPerConnection: 7,
      maxSearchListensPerConnection: 3,
      streamLeaseMs: 9_000,
      maxStreamBytes: 5_000,
      maxRequestsPerConnection: 5,
      maxWords: 20,
      maxHashes: 2,
      ...work,
      dedupeWindowMs: 5_000,
      dedupeMaxIds: 9,
    }
    const fake = await FakeServer.start({ ...limits, brokerMaxPendingBytes: 80_001, pingIntervalMs: 12_000 })
    const client = await fake.connect()
    expect(client.messages).toEqual([
      {
        verb: 'welcome',
        protocol: 'webmq.v1',
        auth: 'none',
        session: expect.stringMatching(/^[\w-]{16}$/),
        node: expect.stringMatching(/^[0-9a-f]{12}$/),
        version: expect.stringMatching(/^\d+\.\d+\.\d+/),
        heartbeatMs: 12_000,
        limits: { ...limits, maxKeyBytes: 255, maxPendingPublishBytes: 10_000 },
      },
    ])
  })

  it('is refused before it begins, with a reason, when it asks for something else', async () => {
    const fake = await FakeServer.start()
    const client = await fake.connect({ path: '/other' })
    expect(client.rejection?.status).toBe(404)
    expect(JSON.parse(client.rejection?.body ?? '')).toMatchObject({ code: 'E_PATH_NOT_FOUND' })
    expect(fake.server.stats().connectionCount).toBe(0)
  })

  it('gets an answer to ping', async () => {
    const fake = await FakeServer.start()
    const client = await fake.connect()
    client.clear()
    client.sendRaw('ping')
    await fake.settled()
    expect(client.messages).toEqual([{ verb: 'pong', position: await fake.position() }])
  })

  it('is told what is not supported', async () => {
    const fake = await FakeServer.start({ historyMaxMessages: 0 })
    const client = await fake.connect()
    client.clear()
    client.send({ verb: 'listen', id: '1', pattern: 'room', group: 'g', last: 1 })
    client.send({ verb: 'history', id: '2', key: 'room' })
    await fake.settled()
    expect(client.received('error').map(({ id, code }) => [id, code])).toEqual([
      ['1', 'E_UNSUPPORTED'],
      ['2', 'E_UNSUPPORTED'],
    ])
  })

  it('reads the history of a key: an answer that says how many, and right behind it the messages', async () => {
    const fake = await FakeServer.start()
    const positions: (string | undefined)[] = []
    for (const text of ['1', '2', '3']) positions.push((await fake.server.publish('k', text)).position)
    await fake.server.publish('other', 'other')
    const client = await fake.connect()
    const read = async (range: { since?: string; last?: number }) => {
      client.clear()
      client.send({ verb: 'history', id: 'h', key: 'k', ...range })
      await fake.settled()
      const [answer, ...messages] = client.messages
      expect(answer).toEqual({ verb: 'ok', id: 'h', position: await fake.position(), replayed: messages.length })
      return client.received('message').map(({ payload, replayed, position }) => [payload, replayed, position])
    }
    expect(await read({ last: 2 })).toEqual([
      ['"2"', true, positions[1]],
      ['"3"', true, positions[2]],
    ])
    expect(await read({})).toHaveLength(3)
    expect(await read({ since: positions[0] ?? '' })).toHaveLength(2)
    await fake.server.publish('k', 'not listened to')
    expect(client.received('message')).toHaveLength(2)
  })

  it('goes on after messages that are malformed, until the sixteenth', async () => {
    const fake = await FakeServer.start()
    const client = await fake.connect()
    client.clear()
    for (let index = 0; index < 15; index++) client.sendRaw(`listen  spaces ${index}`)
    client.sendRaw('dance 1 tango')
    client.sendRaw('publish 2 a*b\n1')
    client.sendRaw('listen 3 a.b*')
    client.send({ verb: 'unlisten', id: '4', pattern: 'never' })
    await fake.settled()
    const codes = client.received('error').map(({ code }) => code)
    expect(codes.slice(0, 15)).toEqual(Array(15).fill('E_MESSAGE_INVALID'))
    expect(codes.slice(15)).toEqual(['E_VERB_UNKNOWN', 'E_KEY_INVALID', 'E_PATTERN_INVALID', 'E_NOT_LISTENING'])
    expect(
      client
        .received('error')
        .map(({ id }) => id)
        .slice(15),
    ).toEqual(['1', '2', '3', '4'])
    expect(client.closure).toBeUndefined()
    client.clear()
    client.sendRaw('')
    client.sendRaw('ping')
    await fake.settled()
    expect(client.messages).toMatchObject([
      { verb: 'error', code: 'E_MESSAGE_INVALID' },
      { verb: 'bye', code: 4500 },
    ])
    expect(client.closure?.code).toBe(4500)
  })

  it('learns nothing of a bug but that there is one, and goes on', async () => {
    const fake = await FakeServer.start()
    const client = await fake.connect()
    client.clear()
    const bug = new TypeError('secret of the house')
    vi.spyOn(fake.broker, 'publish').mockImplementationOnce(() => {
      throw bug
    })
    client.send({ verb: 'publish', id: '1', key: 'k', echo: true, payload: '1' })
    client.send({ verb: 'publish', id: '2', key: 'k', echo: true, payload: '1' })
    await fake.settled()
    expect(client.messages).toMatchObject([
      { verb: 'error', id: '1', code: 'E_INTERNAL', message: 'internal error', retryable: true },
      { verb: 'ok', id: '2' },
    ])
    expect(fake.log.filter(({ level }) => level === 'error').map(({ fields }) => fields)).toMatchObject([{ err: bug }])
  })
})

describe('server.publish and server.listen', () => {
  it('reach connections and are reached by them', async () => {
    const fake = await FakeServer.start()
    const client = await fake.listener('to.client')
    const received: unknown[] = []
    const subscription = fake.server.listen('to.server.#', (payload, { key, position }) => {
      received.push([key, payload, typeof position])
    })
    await subscription.ready
    await fake.server.publish('to.client', { hello: 'client' })
    client.send({ verb: 'publish', key: 'to.server.json', echo: true, payload: '{"a":1}' })
    client.send({ verb: 'publish', key: 'to.server.bytes', echo: true, payload: Uint8Array.of(1, 2) })
    await fake.settled()
    expect(client.received('message').map(({ payload }) => payload)).toEqual(['{"hello":"client"}'])
    await vi.waitFor(() =>
      expect(received).toEqual([
        ['to.server.json', { a: 1 }, 'string'],
        ['to.server.bytes', Uint8Array.of(1, 2), 'string'],
      ]),
    )
    subscription.close()
    subscription.close()
    expect(fake.server.stats().patternCount).toBe(1)
  })

  it('may be used before the server starts: the listener gets everything from the first message on', async () => {
    const fake = new FakeServer()
    const received: unknown[] = []
    fake.server.listen('k', (payload) => received.push(payload))
    const unwanted = fake.server.listen('unwanted', () => received.push('unwanted'))
    unwanted.close()
    await fake.server.start()
    await fake.server.publish('k', 1)
    await fake.server.publish('unwanted', 2)
    await vi.waitFor(() => expect(received).toEqual([1]))
    expect(fake.server.stats().patternCount).toBe(1)
  })

  it('call a handler after the turn, so that one that publishes what it listens to starves no one', async () => {
    const fake = await FakeServer.start()
    let rounds = 0
    const subscription = fake.server.listen('loop', async () => {
      rounds++
      await fake.server.publish('loop', rounds)
    })
    await subscription.ready
    await fake.server.publish('loop', 0)
    const client = await fake.connect()
    expect(client.received('welcome')).toHaveLength(1)
    await vi.waitFor(() => expect(rounds).toBeGreaterThan(3))
    subscription.close()
  })

  it('log what a handler throws and what it cannot read, and go on', async () => {
    const fake = await FakeServer.start()
    const received: unknown[] = []
    const subscription = fake.server.listen('k', async (payload) => {
      received.push(payload)
      throw new Error(`bug ${payload}`)
    })
    await subscription.ready
    const client = await fake.connect()
    for (const payload of ['1', '{not json', '2']) client.send({ verb: 'publish', key: 'k', echo: true, payload })
    await fake.settled()
    await vi.waitFor(() => expect(received).toEqual([1, 2]))
    const logged = (wanted: string) =>
      fake.log.filter(({ level }) => level === wanted).map(({ fields }) => String(Object(fields).err))
    // Whoever published it is at fault, not the application.
    const refused = 'WebMQError: payload cannot be encoded or decoded: a text message is not JSON'
    await vi.waitFor(() => expect(logged('debug')).toContain(refused))
    // One line per second: the next one counts the others.
    expect(logged('error')).toEqual(['Error: bug 1'])
  })

  it.each([
    ['k*', 1, 'E_KEY_INVALID'],
    ['k', undefined, 'E_PAYLOAD_INVALID'],
    ['k', 1n, 'E_PAYLOAD_INVALID'],
    ['k', 'x'.repeat(100), 'E_PAYLOAD_TOO_LARGE'],
  ])('refuse to publish to %j the payload %s', async (key, payload, code) => {
    const fake = await FakeServer.start({ maxPayloadBytes: 100 })
    await expect(fake.server.publish(key, payload)).rejects.toMatchObject({ code })
  })

  // Symptom: "Cannot destructure property 'length' of 'text' as it is undefined".
  it('refuse a key or pattern that is no text, and name the message of a batch', async () => {
    const { server } = await FakeServer.start({ history: ['#=100'] })
    const none = undefined as unknown as string
    const refusal = { code: 'E_KEY_INVALID', message: expect.stringContaining('it is not a text') }
    for (const call of [server.publish(none, 1), server.request(none, 1), server.history(none)])
      await expect(call).rejects.toMatchObject(refusal)
    for (const wrong of [{ key: 5, payload: 1 }, { payload: 1 }, undefined]) {
      const call = server.publishBatch([{ key: 'k', payload: 1 }, wrong as { key: string; payload: unknown }])
      await expect(call).rejects.toMatchObject({
        ...refusal,
        message: expect.stringContaining('message 1 of the batch'),
      })
    }
    for (const listen of [() => server.listen(none, () => undefined), () => server.respond(none, () => undefined)])
      expect(listen).toThrow(expect.objectContaining({ code: 'E_PATTERN_INVALID' }))
  })

  // Symptom: listeners got `{}` or `null` for what was published. Cause: JSON.stringify says that of what it cannot say.
  it.each<[unknown, string]>([
    [new Map([[1, 2]]), 'payload is a Map'],
    [{ users: [new Set([1])] }, 'payload.users[0] is a Set'],
    [Promise.resolve(1), 'payload is a Promise'],
    [{ error: new Error('x') }, 'payload.error is an Error'],
    [[Number.NaN], 'payload[0] is NaN'],
    [{ image: Uint8Array.of(1) }, 'payload.image is a Uint8Array'],
  ])('refuse what JSON cannot say, and name its place: %o', async (payload, detail) => {
    const fake = await FakeServer.start()
    const refusal = { code: 'E_PAYLOAD_INVALID', message: expect.stringContaining(detail) }
    await expect(fake.server.publish('k', payload)).rejects.toMatchObject(refusal)
    await expect(fake.server.publishBatch([{ key: 'k', payload }])).rejects.toMatchObject(refusal)
  })

  // Symptom: a client without a user silenced a price of the server. Cause: one namespace of message ids for everybody.
  it('are no duplicate of a message with the same id that a stranger published before', async () => {
    const fake = await FakeServer.start({ history: ['#=100'] })
    const [stranger, listener] = [await fake.connect(), await fake.listener('prices.#')]
    for (const key of ['chat.1', 'prices.usd']) {
      stranger.send({ verb: 'publish', id: 'p', key, messageId: 'tick-4711', echo: true, payload: '"chat"' })
    }
    await fake.settled()
    expect(stranger.received('ok')).toHaveLength(2)
    const published = await fake.server.publish('prices.usd', 1.2, { id: 'tick-4711' })
    expect(published).toMatchObject({ duplicate: false })
    await fake.settled()
    expect(listener.received('message').map(({ payload }) => payload)).toEqual(['"chat"', '1.2'])
    expect(await fake.server.publish('prices.usd', 1.2, { id: 'tick-4711' })).toMatchObject({ duplicate: true })
  })

  it('de-duplicate by the id of the message', async () => {
    const fake = await FakeServer.start()
    const first = await fake.server.publish('k', 1, { id: 'm-1' })
    expect(await fake.server.publish('k', 1, { id: 'm-1' })).toEqual({ duplicate: true, position: first.position })
    await expect(fake.server.publish('k', 1, { id: 'no spaces' })).rejects.toMatchObject({ code: 'E_MESSAGE_INVALID' })
  })

  it('refuse a pattern that is not valid, and to work for a server that does not run', async () => {
    const fake = new FakeServer()
    expect(() => fake.server.listen('a.b*', () => undefined)).toThrow(
      expect.objectContaining({ code: 'E_PATTERN_INVALID' }),
    )
    await expect(fake.server.publish('k', 1)).rejects.toMatchObject({ code: 'E_NOT_RUNNING' })
    expect(() => fake.server.stats()).toThrow(expect.objectContaining({ code: 'E_NOT_RUNNING' }))
    const { ready } = fake.server.listen('k', () => undefined)
    await fake.server.stop()
    await expect(ready).rejects.toMatchObject({ code: 'E_NOT_RUNNING' })
    expect(() => fake.server.listen('k', () => undefined)).toThrow(expect.objectContaining({ code: 'E_NOT_RUNNING' }))
    await expect(fake.server.start()).rejects.toMatchObject({ code: 'E_NOT_RUNNING' })
  })
})

describe('server.start', () => {
  it('resolves to its address, the same every time', async () => {
    const fake = new FakeServer({ path: '/mq' })
    const addresses = await Promise.all([fake.server.start(), fake.server.start()])
    expect(addresses).toEqual(Array(2).fill({ host: '127.0.0.1', port: 1, url: 'ws://127.0.0.1:1/mq' }))
    expect(fake.server.address).toEqual(addresses[0])
  })

  it('leaves nothing running when it fails', async () => {
    const fake = new FakeServer()
    vi.spyOn(fake.transport, 'start').mockRejectedValue(new Error('in use'))
    const stopped = [vi.spyOn(fake.transport, 'stop'), vi.spyOn(fake.broker, 'stop')]
    await expect(fake.server.start()).rejects.toThrow('in use')
    for (const stop of stopped) expect(stop).toHaveBeenCalledOnce()
    expect(fake.server.address).toBeUndefined()
    await fake.server.stop()
  })
})

describe('server.stop', () => {
  it('sends everyone away with a time to come back after, and ends everything once', async () => {
    const fake = await FakeServer.start()
    const clients = [await fake.connect(), await fake.connect()]
    const stopBroker = vi.spyOn(fake.broker, 'stop')
    const stops = [fake.server.stop({ drainMs: 1_000 }), fake.server.stop()]
    await Promise.all(stops)
    await fake.server.stop()
    for (const client of clients) {
      expect(client.received('bye')).toEqual([{ verb: 'bye', code: 4001, retryAfterMs: expect.any(Number) }])
      expect(client.received('bye')[0]?.retryAfterMs).toBeLessThanOrEqual(20)
      expect(client.closure?.code).toBe(4001)
    }
    expect(stopBroker).toHaveBeenCalledOnce()
    expect(fake.server.address).toBeUndefined()
  })

  it('answers what is on its way to the broker first', async () => {
    const broker = new SlowBroker(new MemoryBroker(memoryOptions()))
    const fake = await FakeServer.start({}, { broker })
    const client = await fake.connect()
    client.clear()
    client.send({ verb: 'publish', id: 'p', key: 'k', echo: true, payload: '1' })
    await fake.settled()
    const stopped = fake.server.stop({ drainMs: 10_000 })
    await fake.settled()
    expect(client.messages).toEqual([])
    broker.release()
    await stopped
    expect(client.messages).toMatchObject([{ verb: 'ok', id: 'p' }, { verb: 'bye' }])
  })

  it('tells the process of its broker until the last connection has gone', async () => {
    const broker = new FaultyBroker()
    const fake = await FakeServer.start({}, { broker })
    const client = await fake.connect()
    client.send({ verb: 'publish', id: 'p', key: 'k', echo: true, payload: '1' })
    const events: unknown[] = []
    fake.server.on('broker', ({ status }) => events.push(status))
    fake.server.on('gap', ({ reason }) => events.push(reason))
    const stopped = fake.server.stop({ drainMs: 1_000 })
    broker.lose()
    broker.recover()
    await stopped
    expect(events).toEqual(['down', 'broker-lost', 'up'])
  })

  it('stops the rest when a part cannot be stopped', async () => {
    const fake = await FakeServer.start()
    vi.spyOn(fake.transport, 'stopAccepting').mockRejectedValueOnce(new Error('stuck'))
    const closed = vi.spyOn(HttpFrontend.prototype, 'close')
    await fake.server.stop({ drainMs: 0 })
    expect(closed).toHaveBeenCalledOnce()
    expect(fake.log.filter(({ level }) => level === 'error')).toMatchObject([{ fields: { part: 'node' } }])
    closed.mockRestore()
  })

  it('does not wait longer than it is given for what the broker does not answer', async () => {
    const broker = new SlowBroker(new MemoryBroker(memoryOptions()))
    const fake = await FakeServer.start({}, { broker })
    const client = await fake.connect()
    client.send({ verb: 'publish', id: 'p', key: 'k', echo: true, payload: '1' })
    await fake.settled()
    await fake.server.stop({ drainMs: 10 })
    expect(client.closure?.code).toBe(4001)
  })

  it('spreads the connections over time, at most over what it is given', async () => {
    const fake = await FakeServer.start()
    const clients = await Promise.all(Array.from({ length: 200 }, () => fake.connect()))
    const stopped = fake.server.stop({ drainMs: 1_000 })
    await vi.waitFor(() => expect(clients.some(({ closure }) => closure !== undefined)).toBe(true), { interval: 5 })
    expect(clients.every(({ closure }) => closure !== undefined)).toBe(false)
    await stopped
    const waits = clients.map((client) => client.received('bye')[0]?.retryAfterMs ?? -1)
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(0)
    expect(Math.max(...waits)).toBeLessThanOrEqual(1_000)
    expect(new Set(waits).size).toBeGreaterThan(10)
  })

  it('takes no new connections meanwhile', async () => {
    const broker = new SlowBroker(new MemoryBroker(memoryOptions()))
    const fake = await FakeServer.start({}, { broker })
    const client = await fake.connect()
    client.send({ verb: 'publish', id: 'p', key: 'k', echo: true, payload: '1' })
    await fake.settled()
    const stopped = fake.server.stop({ drainMs: 1_000 })
    const late = await fake.connect()
    expect(late.rejection).toMatchObject({ status: 503, headers: { 'retry-after': '1' } })
    expect(JSON.parse(late.rejection?.body ?? '')).toMatchObject({ code: 'E_DRAIN' })
    broker.release()
    await stopped
  })

  it('closes at the pace of `drainPerSecond`: a few at once, others one after the other', async () => {
    expect(drainSpreadMs(500, 25_000, 100)).toBe(5_000)
    expect(drainSpreadMs(1, 25_000, 100)).toBe(10)
    expect(drainSpreadMs(100_000, 25_000, 100)).toBe(25_000)
  })

  it('sends idle connections away first, then those that listen, and last those that send', async () => {
    const fake = await FakeServer.start({ drainPerSecond: 20 })
    const sender = await fake.connect()
    await fake.listener('a', 'b')
    await fake.connect()
    await fake.listener('c')
    for (let count = 0; count < 10; count++) sender.send({ verb: 'publish', key: 'k', echo: true, payload: '1' })
    await fake.settled()
    const close = vi.spyOn(fake.transport, 'close')
    await fake.server.stop({ drainMs: 10_000 })
    // Ids count up with the connections.
    const ids = close.mock.calls.map(([connection]) => connection)
    const names = ['sender', 'many', 'idle', 'few']
    const closed = ids.map((id) => names[[...ids].sort((one, other) => one - other).indexOf(id)])
    expect(closed).toEqual(['idle', 'few', 'many', 'sender'])
  })

  it('still accepts connections during the delay, while it is not ready, and refuses them after it', async () => {
    const fake = await FakeServer.start({ drainDelayMs: 60_000 })
    vi.useFakeTimers({ toFake: ['setTimeout'], shouldAdvanceTime: true })
    const stopped = fake.server.stop()
    const client = await fake.connect()
    expect(client.received('welcome')).toHaveLength(1)
    expect(client.closure).toBeUndefined()
    await vi.advanceTimersByTimeAsync(60_000)
    await stopped
    expect(client.closure?.code).toBe(4001)
  })
})
