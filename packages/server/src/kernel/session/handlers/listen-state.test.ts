import { describe, expect, it, vi } from 'vitest'
import type { FakeClient } from 'webmq-conformance'
import { FakeServer } from '../../../../test/fake-server.js'
import type { ServerOptions } from '../../../doors/options/server-options.js'

const OPTIONS: ServerOptions = { retain: ['prices.#'], historyMaxMessages: 10 }

const messages = (client: FakeClient) =>
  client.received('message').map(({ key, payload, replayed }) => [key, payload, replayed])
const listen = { verb: 'listen', id: 'l', pattern: 'prices.*', state: true } as const

async function setAll(fake: FakeServer, count: number, value = 1): Promise<void> {
  for (let index = 0; index < count; index++) await fake.server.publish(`prices.${index}`, value)
}

describe('listen to the state', () => {
  it('replays the last message of each key, however old, and goes on live', async () => {
    const fake = await FakeServer.start(OPTIONS)
    await setAll(fake, 2)
    for (let index = 0; index < 50; index++) await fake.server.publish('other', index)
    await fake.server.publish('prices.0', 2)
    const end = await fake.position()
    const client = await fake.connect()
    client.clear()
    client.send(listen)
    client.send({ verb: 'publish', key: 'prices.1', echo: true, payload: '3' })
    await fake.settled()
    expect(client.messages[0]).toEqual({ verb: 'ok', id: 'l', position: end, replayed: 2, state: true })
    expect(messages(client)).toEqual([
      ['prices.1', '1', true],
      ['prices.0', '2', true],
      ['prices.1', '3', false],
    ])
  })

  it('gives what has changed since a position, removed keys with an empty payload', async () => {
    const fake = await FakeServer.start(OPTIONS)
    await setAll(fake, 3)
    const since = (await fake.position()) ?? ''
    await fake.server.publish('prices.0', new Uint8Array(0))
    await fake.server.publish('prices.2', 2)
    for (let index = 0; index < 50; index++) await fake.server.publish('other', index)
    const client = await fake.connect()
    client.clear()
    client.send({ ...listen, since })
    await fake.settled()
    expect(client.messages[0]).toMatchObject({ recovered: true, replayed: 2, state: true })
    expect(messages(client)).toEqual([
      ['prices.0', new Uint8Array(0), true],
      ['prices.2', '2', true],
    ])
  })

  it('replays nothing after a gap: the client asks for the whole state', async () => {
    const fake = await FakeServer.start(OPTIONS)
    await setAll(fake, 2)
    const client = await fake.connect()
    client.clear()
    client.send({ ...listen, since: 'another:1' })
    await fake.settled()
    const position = await fake.position()
    expect(client.messages).toEqual([{ verb: 'ok', id: 'l', position, gap: 'epoch-changed', replayed: 0, state: true }])
  })

  it('comes in pages, which the connection pays for, and is complete although keys change between them', async () => {
    const fake = await FakeServer.start({ ...OPTIONS, historyMaxMessages: 10_000 })
    await setAll(fake, 1_200)
    const client = await fake.connect()
    const state = new Map<unknown, unknown>()
    let since: string | undefined
    let pageCount = 0
    for (let hasMore = true; hasMore; pageCount++) {
      client.clear()
      client.send({ ...listen, ...(since !== undefined && { since }) })
      const [ok] = await vi.waitFor(() => {
        expect(client.received('ok')).toHaveLength(1)
        return client.received('ok')
      })
      for (const { key, payload } of client.received('message')) {
        if (payload.length === 0) state.delete(key)
        else state.set(key, payload)
      }
      since = ok?.position
      hasMore = ok?.more === true
      if (pageCount === 0) {
        await fake.server.publish('prices.0', 2)
        await fake.server.publish('prices.1', new Uint8Array(0))
        await fake.server.publish('prices.1199', 2)
      }
    }
    expect(pageCount).toBe(3)
    expect([state.size, state.get('prices.0'), state.has('prices.1'), state.get('prices.1199')]).toEqual([
      1_199,
      '2',
      false,
      '2',
    ])
  })

  it('is not read on for a connection that asks for large states all the time', async () => {
    const fake = await FakeServer.start({
      ...OPTIONS,
      historyMaxMessages: 10_000,
      workPerSecond: 1_000,
      workBurst: 1_000,
    })
    await setAll(fake, 1_000)
    const client = await fake.connect()
    let askedCount = 0
    await vi.waitFor(() => {
      client.send({ ...listen, id: `l${++askedCount}` })
      expect(fake.server.stats().work.pauseCount).toBeGreaterThan(0)
    })
    expect(askedCount).toBeLessThan(10)
  })

  it.each([
    ['a broader pattern than is retained', { ...listen, pattern: '#' }, 'E_UNSUPPORTED'],
    ['keys that are not retained', { ...listen, pattern: 'other' }, 'E_UNSUPPORTED'],
    ['a position that nobody has given', { ...listen, since: 'POSITION' }, 'E_POSITION_INVALID'],
  ])('refuses %s', async (_, message, code) => {
    const fake = await FakeServer.start(OPTIONS)
    await setAll(fake, 1)
    const client = await fake.connect()
    const [epoch = ''] = (await fake.position())?.split(':') ?? []
    client.send('since' in message ? { ...message, since: `${epoch}:zzzz` } : message)
    await fake.settled()
    expect(client.received('error')).toMatchObject([{ id: 'l', code }])
    expect(fake.server.stats().listenCount).toBe(0)
  })

  it('refuses it where nothing is retained', async () => {
    const fake = await FakeServer.start()
    const client = await fake.connect()
    client.send(listen)
    await fake.settled()
    expect(client.received('error')).toMatchObject([{ id: 'l', code: 'E_UNSUPPORTED' }])
  })

  it('refuses a key too many to its publisher, who may remove one and try again', async () => {
    const fake = await FakeServer.start({ ...OPTIONS, retainMaxKeys: 2 })
    await setAll(fake, 2)
    const client = await fake.connect()
    client.clear()
    client.send({ verb: 'publish', id: 'a', key: 'prices.2', echo: true, payload: '1' })
    client.send({ verb: 'publish', id: 'b', key: 'prices.0', echo: true, payload: '' })
    client.send({ verb: 'publish', id: 'c', key: 'prices.2', echo: true, payload: '1' })
    await fake.settled()
    expect(client.received('error')).toMatchObject([{ id: 'a', code: 'E_STATE_LIMIT', retryable: true }])
    expect(client.received('ok').map(({ id }) => id)).toEqual(['b', 'c'])
  })
})
