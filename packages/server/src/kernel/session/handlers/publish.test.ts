import { describe, expect, it } from 'vitest'
import type { FakeClient } from 'webmq-conformance'
import { FakeServer } from '../../../../test/fake-server.js'
import { FakeVerifier } from '../../../../test/fake-verifier.js'
import { memoryOptions } from '../../../../test/memory-options.js'
import { SlowBroker } from '../../../../test/slow-broker.js'
import { MemoryBroker } from '../../../adapters/brokers/memory/broker.js'

describe('publish', () => {
  it('reaches everyone who listens, each once, byte for byte, and is answered with its position', async () => {
    const fake = await FakeServer.start()
    const twice = await fake.listener('chat.#', 'chat.*.message')
    const other = await fake.listener('other.#')
    const publisher = await fake.connect()
    publisher.clear()
    const payload = '{ "big": 9007199254740993, "ü": "\u2028" }'
    publisher.send({ verb: 'publish', id: 'p1', key: 'chat.42.message', echo: true, payload })
    await fake.settled()
    const position = await fake.position()
    expect(publisher.messages).toEqual([{ verb: 'ok', id: 'p1', position }])
    expect(twice.messages).toEqual([{ verb: 'message', key: 'chat.42.message', position, replayed: false, payload }])
    expect(other.messages).toEqual([])
    expect(twice.frames.map(({ data }) => data)).toEqual([`message chat.42.message ${position}\n${payload}`])
  })

  it('sends bytes as a binary frame', async () => {
    const fake = await FakeServer.start()
    const listener = await fake.listener('#')
    const payload = Uint8Array.of(0, 10, 255)
    listener.send({ verb: 'publish', key: 'k', echo: true, payload })
    await fake.settled()
    expect(listener.frames.map(({ isBinary }) => isBinary)).toEqual([true])
    expect(listener.received('message')[0]?.payload).toEqual(payload)
  })

  it('answers nothing without an id, except an error', async () => {
    const fake = await FakeServer.start({ maxPayloadBytes: 10 })
    const client = await fake.connect()
    client.clear()
    client.send({ verb: 'publish', key: 'k', echo: true, payload: '1' })
    client.send({ verb: 'publish', key: 'k', echo: true, payload: '"12345678901"' })
    await fake.settled()
    expect(client.messages).toEqual([
      expect.objectContaining({ verb: 'error', code: 'E_PAYLOAD_TOO_LARGE', retryable: false }),
    ])
    expect(client.frames[0]?.data).toMatch(/^error - E_PAYLOAD_TOO_LARGE/)
  })

  it('takes a payload of exactly the limit', async () => {
    const fake = await FakeServer.start({ maxPayloadBytes: 10 })
    const client = await fake.connect()
    client.send({ verb: 'publish', id: 'a', key: 'k', echo: true, payload: '"12345678"' })
    client.send({ verb: 'publish', id: 'b', key: 'k', echo: true, payload: '"123456789"' })
    await fake.settled()
    expect(client.received('ok').map(({ id }) => id)).toEqual(['a'])
    expect(client.received('error').map(({ id, code }) => [id, code])).toEqual([['b', 'E_PAYLOAD_TOO_LARGE']])
  })

  it('leaves out the publisher with noecho, and only the publisher', async () => {
    const fake = await FakeServer.start()
    const publisher = await fake.listener('#')
    const other = await fake.listener('#')
    publisher.send({ verb: 'publish', key: 'k', echo: false, payload: '1' })
    publisher.send({ verb: 'publish', key: 'k', echo: true, payload: '2' })
    await fake.settled()
    expect(publisher.received('message').map(({ payload }) => payload)).toEqual(['2'])
    expect(other.received('message').map(({ payload }) => payload)).toEqual(['1', '2'])
  })

  it('replays a message with noecho to its publisher, too [P-7.5]', async () => {
    const fake = await FakeServer.start()
    const publisher = await fake.listener('#')
    publisher.send({ verb: 'publish', key: 'k', echo: false, payload: '1' })
    await fake.settled()
    expect(publisher.received('message')).toEqual([])
    publisher.send({ verb: 'listen', id: 'again', pattern: '#', last: 1 })
    publisher.send({ verb: 'history', id: 'h', key: 'k', last: 1 })
    await fake.settled()
    expect(publisher.received('message').map(({ payload, replayed }) => [payload, replayed])).toEqual([
      ['1', true],
      ['1', true],
    ])
  })

  it('writes - for a message that is not in the log beside one that is [P-6.3]', async () => {
    const fake = await FakeServer.start({ history: ['logged=10'] })
    const listener = await fake.listener('#')
    listener.send({ verb: 'publish', id: 'p', key: 'other', echo: true, payload: '1' })
    listener.send({ verb: 'publish', key: 'logged', echo: true, payload: '2' })
    await fake.settled()
    expect(listener.received('ok')).toEqual([{ verb: 'ok', id: 'p' }])
    const position = await fake.position()
    expect(listener.frames.flatMap(({ data }) => (String(data).startsWith('message') ? [data] : []))).toEqual([
      'message other -\n1',
      `message logged ${position}\n2`,
    ])
  })

  it('delivers a message id once, from whichever connection the second one comes', async () => {
    const fake = await FakeServer.start()
    const listener = await fake.listener('#')
    const [first, second] = [await fake.connect(), await fake.connect()]
    first.send({ verb: 'publish', id: '1', key: 'k', messageId: 'm', echo: true, payload: '1' })
    await fake.settled()
    second.send({ verb: 'publish', id: '2', key: 'k', messageId: 'm', echo: true, payload: '1' })
    await fake.settled()
    const position = await fake.position()
    expect(first.received('ok')).toEqual([{ verb: 'ok', id: '1', position }])
    expect(second.received('ok')).toEqual([{ verb: 'ok', id: '2', position, duplicate: true }])
    expect(listener.received('message')).toHaveLength(1)
  })

  // An anonymous client that may publish to chat.# suppressed what the server published to prices.usd.
  // Ids of the server and of anonymous clients were compared with each other, whatever the key.
  it('delivers the same message id of another owner, or to another key [P-7.3]', async () => {
    const fake = await FakeServer.start()
    const listener = await fake.listener('#')
    const client = await fake.connect()
    const publish = async (key: string) => {
      client.send({ verb: 'publish', id: 'p', key, messageId: 'tick-4711', echo: true, payload: '"client"' })
      await fake.settled()
    }
    await publish('chat.x')
    expect(await fake.server.publish('prices.usd', 'server', { id: 'tick-4711' })).toMatchObject({ duplicate: false })
    await publish('prices.usd')
    expect(await fake.server.publish('chat.x', 'server', { id: 'tick-4711' })).toMatchObject({ duplicate: false })
    expect(client.received('ok').map(({ duplicate }) => duplicate)).not.toContain(true)
    expect(listener.received('message').map(({ key, payload }) => [key, payload])).toEqual([
      ['chat.x', '"client"'],
      ['prices.usd', '"server"'],
      ['prices.usd', '"client"'],
      ['chat.x', '"server"'],
    ])
    await publish('chat.x')
    expect(await fake.server.publish('prices.usd', 'server', { id: 'tick-4711' })).toMatchObject({ duplicate: true })
    expect(listener.received('message')).toHaveLength(4)
  })

  it('keeps the order of one connection, its own listens included', async () => {
    const fake = await FakeServer.start()
    const listener = await fake.listener('#')
    const texts = Array.from({ length: 100 }, (_, index) => `${index}`)
    for (const payload of texts) listener.send({ verb: 'publish', key: `k.${+payload % 3}`, echo: true, payload })
    await fake.settled()
    expect(listener.received('message').map(({ payload }) => payload)).toEqual(texts)
  })

  it('answers when a broker that takes its time has accepted it, and does not keep others waiting', async () => {
    const broker = new SlowBroker(new MemoryBroker(memoryOptions()))
    const fake = await FakeServer.start({}, { broker })
    const client = await fake.connect()
    client.clear()
    client.send({ verb: 'publish', id: '1', key: 'k', echo: true, payload: '1' })
    client.send({ verb: 'publish', id: '2', key: 'k', echo: true, payload: '2' })
    await fake.settled()
    expect(broker.waitingCount).toBe(2)
    expect(client.messages).toEqual([])
    broker.release()
    await fake.settled()
    expect(client.received('ok').map(({ id }) => id)).toEqual(['1'])
    broker.release()
    await fake.settled()
    expect(client.received('ok').map(({ id }) => id)).toEqual(['1', '2'])
  })

  // Symptom: while the broker was away, eight connections of one user took all that may wait, and nobody else could publish.
  // Cause: each connection had a share, and a user none.
  it('leaves room for others while a broker that is away keeps what one client sends by many connections', async () => {
    const broker = new SlowBroker(new MemoryBroker(memoryOptions()))
    const identity = (userId: string) => ({ userId, grants: [{ keys: ['#'], allow: ['publish' as const] }] })
    const verifier = new FakeVerifier({ mallory: identity('mallory'), alice: identity('alice') })
    const options = { brokerMaxPendingBytes: 800_000, maxPayloadBytes: 50_000 }
    const fake = await FakeServer.start(options, { broker, verifier })
    const connect = async (token: string) => {
      const client = await fake.connect()
      client.send({ verb: 'auth', id: 'a', token })
      await fake.settled()
      client.clear()
      return client
    }
    const publish = async (client: FakeClient, id: string) => {
      client.send({ verb: 'publish', id, key: 'k', echo: true, payload: JSON.stringify('x'.repeat(40_000)) })
      await fake.settled()
      return client.received('error').find((error) => error.id === id)?.code
    }
    const [first, second, third] = [await connect('mallory'), await connect('mallory'), await connect('mallory')]
    expect([await publish(first, '1'), await publish(first, '2')]).toEqual([undefined, undefined])
    expect([await publish(second, '3'), await publish(second, '4')]).toEqual([undefined, undefined])
    expect(await publish(third, '5')).toBe('E_BROKER_UNAVAILABLE')
    expect(await publish(await connect('alice'), '6')).toBeUndefined()
    // What has gone takes no room.
    for (let count = 0; count < 5; count++) broker.release()
    await fake.settled()
    expect(await publish(third, '7')).toBeUndefined()
  })

  describe('while the broker is too slow', () => {
    async function slow() {
      const broker = new SlowBroker(new MemoryBroker(memoryOptions()))
      const fake = await FakeServer.start({}, { broker })
      const [client, other] = [await fake.connect(), await fake.connect()]
      for (const each of [client, other]) each.clear()
      const publish = (from: typeof client, id: string) => {
        from.send({ verb: 'publish', id, key: 'k', echo: true, payload: id })
        return fake.settled()
      }
      broker.room.isFull = true
      return { broker, fake, client, other, publish }
    }
    const ids = (client: { received(verb: 'ok' | 'error'): { id?: string | undefined }[] }, verb: 'ok' | 'error') =>
      client.received(verb).map(({ id }) => id)

    it('keeps the messages of every connection in order, first come, first served, and answers pings', async () => {
      const { broker, fake, client, other, publish } = await slow()
      for (const id of ['1', '2']) await publish(client, id)
      await publish(other, '3')
      client.send({ verb: 'ping' })
      await fake.settled()
      expect(client.messages).toMatchObject([{ verb: 'pong' }])
      expect(broker.published).toEqual([])
      // Each is given while there is room for it.
      broker.room.isFull = false
      broker.room.onRoom?.()
      await fake.settled()
      expect(broker.published).toEqual(['1', '3', '2'])
      while (broker.waitingCount > 0) broker.release()
      await fake.settled()
      expect(ids(client, 'ok').sort()).toEqual(['1', '2'])
      expect(ids(other, 'ok')).toEqual(['3'])
      expect(fake.server.stats().publishRateCounts).toEqual({ connection: 0, user: 0, broker: 0 })
    })

    // A client may send on before it knows. That must not overtake the refused message.
    it('refuses after a second what waits and all behind it, with a time, and lets it pass first', async () => {
      const { broker, fake, client, other, publish } = await slow()
      for (const id of ['1', '2']) await publish(client, id)
      await expect.poll(() => ids(client, 'error'), { timeout: 5_000 }).toEqual(['1', '2'])
      const [first] = client.received('error')
      expect(first).toMatchObject({ code: 'E_RATE_LIMIT', retryable: true })
      expect(first?.retryAfterMs).toBeGreaterThanOrEqual(800)
      expect(first?.retryAfterMs).toBeLessThanOrEqual(1_200)
      broker.room.isFull = false
      await publish(client, '4')
      expect(ids(client, 'error')).toEqual(['1', '2', '4'])
      await publish(other, '3')
      expect(broker.published).toEqual(['3'])
      expect(fake.server.stats().publishRateCounts).toEqual({ connection: 0, user: 0, broker: 3 })
      while (broker.waitingCount > 0) broker.release()
    })

    it('refuses, with a time, what is too much for the inbox of a connection', async () => {
      const { client, publish } = await slow()
      for (let id = 0; id < 1_026; id++)
        client.send({ verb: 'publish', id: `${id}`, key: 'k', echo: true, payload: 'x' })
      await publish(client, 'last')
      await expect.poll(() => new Set(ids(client, 'error')).size).toBe(1_027)
      const errors = client.received('error')
      expect(errors.every(({ code, retryAfterMs }) => code === 'E_RATE_LIMIT' && retryAfterMs !== undefined)).toBe(true)
    })
  })

  it('answers with the error of a broker that has failed', async () => {
    const fake = await FakeServer.start()
    const client = await fake.connect()
    client.clear()
    await fake.broker.stop()
    client.send({ verb: 'publish', id: '1', key: 'k', echo: true, payload: '1' })
    await fake.settled()
    expect(client.received('error')).toMatchObject([{ id: '1', code: 'E_BROKER_UNAVAILABLE', retryable: true }])
  })
})
