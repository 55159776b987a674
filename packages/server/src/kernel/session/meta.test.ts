import { describe, expect, it } from 'vitest'
import type { FakeClient } from 'webmq-conformance'
import { FakeServer } from '../../../test/fake-server.js'
import { FakeVerifier } from '../../../test/fake-verifier.js'
import type { ServerOptions } from '../../doors/options/server-options.js'
import type { Grant } from '../identity/index.js'

const TIME_MS = expect.any(Number)
const ID = expect.stringMatching(/^[\w-]{22}$/)

const USERS = ['ann', 'bob', 'Ädä @1']
/** A token has visible ASCII alone. */
const tokenOf = (userId: string) => Buffer.from(userId).toString('hex')
const grants: readonly Grant[] = [{ keys: ['#'], allow: ['listen', 'publish'] }]

async function start(options: ServerOptions = { meta: ['chat.#'] }) {
  const tokens = new FakeVerifier(Object.fromEntries(USERS.map((userId) => [tokenOf(userId), { userId, grants }])))
  const fake = await FakeServer.start(options, { verifier: tokens })
  const connect = async (user: string) => {
    const client = await fake.connect()
    client.send({ verb: 'auth', id: 'a', token: tokenOf(user) })
    await fake.settled()
    client.clear()
    return client
  }
  const listen = async (client: FakeClient, pattern: string, more: object = {}) => {
    client.send({ verb: 'listen', id: pattern.replace(/[^\w-]/g, '_'), pattern, ...more })
    await fake.settled()
    client.clear()
  }
  const publish = async (client: FakeClient, key: string, more: object = {}) => {
    client.send({ verb: 'publish', key, echo: true, payload: '1', ...more })
    await fake.settled()
  }
  return { fake, connect, listen, publish }
}

const metas = (client: FakeClient) => client.received('message').map(({ key, meta }) => [key, meta])

describe('a listen with meta [P-15.1]', () => {
  it('gets who published a message and when, and a listen without it no byte more', async () => {
    const { fake, connect, listen, publish } = await start()
    const [asking, plain, publisher] = [await connect('ann'), await connect('ann'), await connect('Ädä @1')]
    await listen(asking, '#', { meta: true })
    await listen(plain, '#')
    await publish(publisher, 'chat.1', { messageId: 'mine' })
    await publish(publisher, 'other')
    await fake.server.publish('chat.2', 2)
    expect(metas(asking)).toEqual([
      ['chat.1', { userId: 'Ädä @1', timeMs: TIME_MS, id: ID }],
      ['other', undefined],
      ['chat.2', { timeMs: TIME_MS, id: ID }],
    ])
    expect(asking.frames[0]?.data).toMatch(
      /^message chat\.1 \S+ user=%C3%84d%C3%A4%20%401 time=\d{13} id=[\w-]{22}\n1$/,
    )
    expect(asking.frames[0]?.data).not.toContain('mine')
    expect(plain.frames.map(({ data }) => String(data).split(' ').length)).toEqual([3, 3, 3])
  })

  it('has them in replays and in the history, as they were live', async () => {
    const { connect, listen, publish } = await start()
    const [live, later] = [await connect('ann'), await connect('bob')]
    await listen(live, 'chat.*', { meta: true })
    for (const key of ['chat.1', 'chat.1', 'chat.2']) await publish(live, key)
    const all = metas(live)
    expect(new Set(all.map(([, meta]) => JSON.stringify(meta))).size).toBe(3)
    later.send({ verb: 'listen', id: 'l', pattern: 'chat.*', last: 3, meta: true })
    later.send({ verb: 'history', id: 'h', key: 'chat.1', meta: true })
    later.send({ verb: 'history', id: 'p', key: 'chat.1' })
    await publish(later, 'end')
    const plain = [
      ['chat.1', undefined],
      ['chat.1', undefined],
    ]
    expect(metas(later)).toEqual([...all, ...all.slice(0, 2), ...plain])
  })

  it('gets each message once beside listens without it, whichever came first', async () => {
    const { fake, connect, publish } = await start()
    const client = await connect('ann')
    client.send({ verb: 'listen', id: '1', pattern: 'chat.*' })
    client.send({ verb: 'listen', id: '2', pattern: 'chat.#', meta: true })
    client.send({ verb: 'listen', id: '3', pattern: '*.a', overflow: 'latest' })
    await fake.settled()
    client.clear()
    await publish(client, 'chat.a')
    client.send({ verb: 'unlisten', id: '4', pattern: 'chat.#' })
    await publish(client, 'chat.a')
    client.send({ verb: 'unlisten', id: '5', pattern: 'chat.*' })
    client.send({ verb: 'unlisten', id: '6', pattern: '*.a' })
    await publish(client, 'chat.a')
    expect(metas(client)).toEqual([
      ['chat.a', { userId: 'ann', timeMs: TIME_MS, id: ID }],
      ['chat.a', { userId: 'ann', timeMs: TIME_MS, id: ID }],
    ])
    expect(fake.server.stats().patternCount).toBe(0)
  })

  it('gets no word of what a client says about itself', async () => {
    const { fake, connect, listen } = await start()
    const [asking, forger] = [await connect('ann'), await connect('bob')]
    await listen(asking, 'chat.#', { meta: true })
    for (const option of ['user=ann', 'user-id=ann', 'time=1', 'meta', 'key=chat.2']) {
      forger.sendRaw(`publish - chat.1 ${option}\n{"userId":"ann"}`)
    }
    await fake.settled()
    const said = metas(asking)
    expect(said).toHaveLength(5)
    for (const each of said) expect(each).toEqual(['chat.1', { userId: 'bob', timeMs: TIME_MS, id: ID }])
    for (const [, meta] of said) expect(meta).not.toMatchObject({ timeMs: 1 })
  })

  it('shows an id under which nobody else can publish', async () => {
    const { fake, connect, listen, publish } = await start()
    const [asking, publisher] = [await connect('ann'), await connect('bob')]
    await listen(asking, 'chat.#', { meta: true })
    await publish(publisher, 'chat.1', { messageId: 'tick-1' })
    const id = String(asking.received('message')[0]?.meta?.id)
    expect(id).not.toContain('tick')
    await publish(asking, 'chat.1', { messageId: id })
    await publish(publisher, 'chat.1', { messageId: id, id: 'p' })
    await fake.server.publish('chat.1', 1, { id })
    expect(asking.received('message')).toHaveLength(4)
    expect(new Set(asking.received('message').map(({ meta }) => meta?.id)).size).toBe(4)
  })

  it('is refused where no message has any', async () => {
    const { fake, connect } = await start()
    const client = await connect('ann')
    client.send({ verb: 'listen', id: 'key', pattern: 'other.1', meta: true })
    client.send({ verb: 'history', id: 'history', key: 'other.1', meta: true })
    client.send({ verb: 'listen', id: 'good', pattern: 'chat.1', meta: true })
    await fake.settled()
    expect(client.received('error').map(({ id, code }) => [id, code])).toEqual([
      ['key', 'E_UNSUPPORTED'],
      ['history', 'E_UNSUPPORTED'],
    ])
    expect(client.received('ok').map(({ id }) => id)).toEqual(['good'])
    const without = await start({})
    const other = await without.connect('ann')
    other.send({ verb: 'listen', id: 'l', pattern: '#', meta: true })
    await without.fake.settled()
    expect(other.received('error')).toEqual([expect.objectContaining({ id: 'l', code: 'E_UNSUPPORTED' })])
  })

  it('tells handlers in the process too', async () => {
    const { fake, connect, publish } = await start()
    const seen: object[] = []
    await fake.server.listen('chat.#', (_, { userId, timeMs, id }) => seen.push({ userId, timeMs, id })).ready
    await publish(await connect('ann'), 'chat.1')
    await fake.settled()
    expect(seen).toEqual([{ userId: 'ann', timeMs: TIME_MS, id: ID }])
    const { messages } = await fake.server.history('chat.1')
    expect(messages).toEqual([expect.objectContaining(seen[0] ?? {})])
  })
})

describe('an ephemeral publish [P-15.4]', () => {
  it('reaches live listeners in its place, has no position, and is not in the log', async () => {
    const { fake, connect, listen, publish } = await start()
    const [listener, publisher] = [await connect('ann'), await connect('bob')]
    await listen(listener, 'chat.#', { meta: true })
    await publish(publisher, 'chat.1', { id: '1' })
    await publish(publisher, 'chat.1', { id: '2', ephemeral: true })
    await publish(publisher, 'chat.1', { id: '3' })
    expect(publisher.received('ok').map(({ position }) => position !== undefined)).toEqual([true, false, true])
    expect(listener.received('message').map(({ position }) => position)).toEqual(
      publisher.received('ok').map(({ position }) => position),
    )
    expect(listener.received('message')[1]?.meta).toEqual({ userId: 'bob', timeMs: TIME_MS, id: ID })
    const since = publisher.received('ok')[0]?.position ?? ''
    listener.clear()
    listener.send({ verb: 'listen', id: 'again', pattern: 'chat.1', since })
    await fake.settled()
    expect(listener.received('ok')).toEqual([expect.objectContaining({ recovered: true, replayed: 1 })])
    expect(listener.received('gap')).toEqual([])
  })

  it('is delivered once per message id', async () => {
    const { connect, listen, publish } = await start()
    const [listener, publisher] = [await connect('ann'), await connect('bob')]
    await listen(listener, 'chat.#')
    for (const id of ['1', '2']) await publish(publisher, 'chat.1', { id, ephemeral: true, messageId: 'once' })
    expect(publisher.received('ok')).toEqual([
      { verb: 'ok', id: '1' },
      { verb: 'ok', id: '2', duplicate: true },
    ])
    expect(listener.received('message')).toHaveLength(1)
  })

  it('has an option without a value alone', async () => {
    const { fake, connect } = await start()
    const client = await connect('ann')
    client.sendRaw('publish p chat.1 ephemeral=1\n1')
    await fake.settled()
    expect(client.received('error')).toEqual([expect.objectContaining({ id: 'p', code: 'E_MESSAGE_INVALID' })])
  })

  it('of the process is not logged either', async () => {
    const { fake } = await start()
    expect(await fake.server.publish('chat.1', 1, { ephemeral: true })).toEqual({ duplicate: false })
    const results = await fake.server.publishBatch([
      { key: 'chat.1', payload: 2, ephemeral: true },
      { key: 'chat.1', payload: 3 },
    ])
    expect(results.map(({ position }) => position !== undefined)).toEqual([false, true])
    expect((await fake.server.history('chat.1')).messages.map(({ payload }) => payload)).toEqual([3])
  })
})
