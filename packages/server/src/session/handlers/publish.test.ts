import { describe, expect, it } from 'vitest'
import { FakeServer } from '../../../test/fake-server.js'
import { memoryOptions } from '../../../test/memory-options.js'
import { SlowBroker } from '../../../test/slow-broker.js'
import { MemoryBroker } from '../../brokers/memory/broker.js'

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

  // A client may send on before it knows. That must not overtake the refused message.
  it('asks every client to wait while the broker is too slow, and those that were refused for a while longer', async () => {
    const broker = new SlowBroker(new MemoryBroker(memoryOptions()))
    const fake = await FakeServer.start({}, { broker })
    const [client, other] = [await fake.connect(), await fake.connect()]
    const publish = (from: typeof client, id: string) => {
      from.send({ verb: 'publish', id, key: 'k', echo: true, payload: id })
      return fake.settled()
    }
    broker.isSlow = true
    await publish(client, '1')
    expect(client.received('error')).toMatchObject([
      { id: '1', code: 'E_RATE_LIMIT', retryable: true, retryAfterMs: 1_000 },
    ])
    broker.isSlow = false
    await publish(client, '2')
    expect(client.received('error').map(({ id }) => id)).toEqual(['1', '2'])
    await publish(other, '3')
    expect(broker.waitingCount).toBe(1)
    expect(fake.server.stats().publishRateCounts).toEqual({ connection: 0, user: 0, broker: 2 })
    broker.release()
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
