import { describe, expect, it } from 'vitest'
import type { ClientMessage } from 'webmq-client/protocol'
import type { FakeClient } from 'webmq-conformance'
import { FakeServer } from '../../../test/fake-server.js'
import { FakeVerifier } from '../../../test/fake-verifier.js'
import type { ServerOptions } from '../../doors/options/server-options.js'
import type { Grant } from '../../kernel/identity/index.js'

type Listen = Extract<ClientMessage, { verb: 'listen' }>

const offering = (token: string) => ({ subprotocols: ['webmq.v1', `webmq.bearer.${token}`] })

async function send(fake: FakeServer, client: FakeClient, message: ClientMessage) {
  client.send(message)
  await fake.settled()
  return client.messages.at(-1)
}

async function member(fake: FakeServer, more: Partial<Listen> = {}, pattern = 'jobs.*'): Promise<FakeClient> {
  const client = await fake.connect()
  client.clear()
  const listen = { verb: 'listen', id: 'l', pattern, group: 'workers', ...more } as const
  expect(await send(fake, client, listen)).toEqual({ verb: 'ok', id: 'l' })
  client.clear()
  return client
}

async function publishTo(fake: FakeServer, key: string, count: number): Promise<void> {
  const publisher = await fake.connect()
  for (let index = 0; index < count; index++) {
    publisher.send({ verb: 'publish', id: `p${index}`, key, echo: true, payload: `${index}` })
  }
  await fake.settled()
  expect(publisher.received('ok')).toHaveLength(count)
  publisher.drop()
}

describe('listen with a group', () => {
  it('gives each message to one member in turn, and to all ordinary listeners', async () => {
    const fake = await FakeServer.start()
    const [one, two] = [await member(fake), await member(fake)]
    const other = await member(fake, { group: 'others' })
    const listener = await fake.listener('jobs.#')
    await publishTo(fake, 'jobs.x', 4)
    expect(one.messages).toEqual(
      ['0', '2'].map((payload) => ({ verb: 'task', group: 'workers', pattern: 'jobs.*', key: 'jobs.x', payload })),
    )
    expect(two.received('task').map(({ payload }) => payload)).toEqual(['1', '3'])
    expect(other.received('task')).toHaveLength(4)
    expect(listener.received('message')).toHaveLength(4)
  })

  it('passes on bytes as bytes', async () => {
    const fake = await FakeServer.start()
    const client = await member(fake)
    const payload = Uint8Array.of(0, 255)
    await send(fake, client, { verb: 'publish', key: 'jobs.x', echo: true, payload })
    expect(client.frames.map(({ isBinary }) => isBinary)).toEqual([true])
    expect(client.received('task')[0]?.payload).toEqual(payload)
  })

  it('ends with unlisten, and with the connection', async () => {
    const fake = await FakeServer.start()
    const [one, two, three] = [await member(fake), await member(fake), await member(fake)]
    expect(await send(fake, one, { verb: 'unlisten', id: 'u', pattern: 'jobs.*', group: 'workers' })).toEqual({
      verb: 'ok',
      id: 'u',
    })
    const again = await send(fake, one, { verb: 'unlisten', id: 'v', pattern: 'jobs.*', group: 'workers' })
    expect(again).toMatchObject({ verb: 'error', code: 'E_NOT_LISTENING' })
    two.drop()
    await publishTo(fake, 'jobs.x', 3)
    expect(one.received('task')).toEqual([])
    expect(three.received('task')).toHaveLength(3)
    three.drop()
    await fake.settled()
    expect(fake.server.stats()).toMatchObject({ listenCount: 0, queueGroups: { groupCount: 0, memberCount: 0 } })
  })

  it('passes over a member that does not read while another does', async () => {
    const fake = await FakeServer.start()
    const [slow, fast] = [await member(fake), await member(fake)]
    slow.stopReading()
    const publisher = await fake.connect()
    for (let index = 0; index < 40; index++) {
      const payload = JSON.stringify('x'.repeat(20_000))
      await send(fake, publisher, { verb: 'publish', id: `${index}`, key: 'jobs.x', echo: true, payload })
    }
    expect(slow.received('task').length).toBeLessThan(8)
    expect(fast.received('task').length + slow.received('task').length).toBe(40)
    expect(slow.closure).toBeUndefined()
  })

  it.each([
    ['a replay', { since: 'e:1' }, 'E_UNSUPPORTED'],
    ['the last messages', { last: 1 }, 'E_UNSUPPORTED'],
    ['an overflow', { overflow: 'latest' }, 'E_UNSUPPORTED'],
    ['too many words', { pattern: 'a.b.c.d' }, 'E_PATTERN_INVALID'],
    ['what belongs to servers', { pattern: '$webmq.groups' }, 'E_FORBIDDEN'],
  ] as const)('refuses %s', async (_what, more, code) => {
    const fake = await FakeServer.start({ maxWords: 3 })
    const client = await fake.connect()
    const listen = { verb: 'listen', id: 'l', pattern: 'jobs.*', group: 'workers', ...more } as const
    expect(await send(fake, client, listen)).toMatchObject({ verb: 'error', id: 'l', code })
    expect(fake.server.stats().queueGroups.memberCount).toBe(0)
  })

  it('counts memberships and listens together', async () => {
    const fake = await FakeServer.start({ maxListensPerConnection: 2 })
    const client = await member(fake)
    await send(fake, client, { verb: 'listen', id: '2', pattern: 'a' })
    expect(await send(fake, client, { verb: 'listen', id: '3', pattern: 'b' })).toMatchObject({
      code: 'E_LISTEN_LIMIT',
    })
    const other = { verb: 'listen', id: '4', pattern: 'jobs.*', group: 'others' } as const
    expect(await send(fake, client, other)).toMatchObject({ code: 'E_LISTEN_LIMIT' })
    // It is a member already.
    expect(await send(fake, client, { ...other, id: '5', group: 'workers' })).toEqual({ verb: 'ok', id: '5' })
    expect(fake.server.stats()).toMatchObject({ listenCount: 2, queueGroups: { memberCount: 1 } })
  })

  it('needs the grant to listen, and ends when a new token does not have it', async () => {
    const grants: readonly Grant[] = [{ keys: ['jobs.#'], allow: ['listen', 'publish'] }]
    const verifier = new FakeVerifier({ all: { userId: 'u', grants }, none: { userId: 'u', grants: [] } })
    const fake = await FakeServer.start({}, { verifier })
    const client = await fake.connect(offering('all'))
    const listen = { verb: 'listen', id: 'l', pattern: 'jobs.*', group: 'workers' } as const
    expect(await send(fake, client, { ...listen, pattern: 'other' })).toMatchObject({ code: 'E_FORBIDDEN' })
    expect(await send(fake, client, listen)).toMatchObject({ verb: 'ok' })
    await send(fake, client, { verb: 'auth', id: 'a', token: 'none' })
    expect(client.received('ended')).toMatchObject([{ group: 'workers', pattern: 'jobs.*', code: 'E_FORBIDDEN' }])
    expect(fake.server.stats().queueGroups.memberCount).toBe(0)
  })
})

describe('request', () => {
  const request = { verb: 'request', id: 'r', key: 'sum.x', withinMs: 60_000, payload: '[1,2]' } as const
  const responder = (fake: FakeServer) => member(fake, { respond: true, group: 'responders' }, 'sum.*')

  it('reaches one responder alone, and the reply reaches the requester alone', async () => {
    const fake = await FakeServer.start()
    const [one, two] = [await responder(fake), await responder(fake)]
    const listener = await fake.listener('#')
    const client = await fake.connect()
    client.clear()
    expect(await send(fake, client, request)).toEqual({ verb: 'ok', id: 'r' })
    const [task] = one.received('task')
    expect(task).toMatchObject({ key: 'sum.x', payload: '[1,2]', withinMs: 60_000 })
    one.send({ verb: 'reply', id: task?.request ?? '', isError: false, payload: '3' })
    await fake.settled()
    expect(client.messages.at(-1)).toEqual({ verb: 'reply', id: 'r', isError: false, payload: '3' })
    expect([...two.messages, ...listener.messages]).toEqual([])
  })

  it('is refused at once when nobody responds, whoever listens', async () => {
    const fake = await FakeServer.start()
    await member(fake, {}, 'sum.*')
    const listener = await fake.listener('sum.#')
    const client = await fake.connect()
    expect(await send(fake, client, request)).toMatchObject({ verb: 'error', id: 'r', code: 'E_NO_RESPONDERS' })
    expect(listener.messages).toEqual([])
  })

  it('takes no reply from a connection that was not handed it, and no second one', async () => {
    const fake = await FakeServer.start()
    const [one, two] = [await responder(fake), await responder(fake)]
    const client = await fake.connect()
    await send(fake, client, request)
    const [{ request: id = '' } = {}] = one.received('task')
    const reply = { verb: 'reply', id, isError: false, payload: '"forged"' } as const
    for (const stranger of [two, client]) {
      expect(await send(fake, stranger, reply)).toMatchObject({ verb: 'error', id, code: 'E_TIMEOUT' })
    }
    one.send({ ...reply, payload: '3' })
    expect(await send(fake, one, reply)).toMatchObject({ verb: 'error', code: 'E_TIMEOUT' })
    expect(client.received('reply')).toMatchObject([{ payload: '3' }])
  })

  it('ends with an error at once when the connection of its responder ends', async () => {
    const fake = await FakeServer.start()
    const one = await responder(fake)
    const client = await fake.connect()
    await send(fake, client, request)
    one.drop()
    await fake.settled()
    await expect.poll(() => client.received('reply')).toMatchObject([{ id: 'r', isError: true }])
    expect(JSON.parse(String(client.received('reply')[0]?.payload))).toMatchObject({ code: 'E_RESPONSE' })
  })

  const LIMITS: ServerOptions = { maxRequestsPerConnection: 1, maxPayloadBytes: 1_100 }
  it.each([
    ['a payload above the limit', { payload: 'x'.repeat(1_101) }, 'E_PAYLOAD_TOO_LARGE'],
    ['no time', { withinMs: 0 }, 'E_MESSAGE_INVALID'],
    ['too much time', { withinMs: 300_001 }, 'E_MESSAGE_INVALID'],
    ['keys of servers', { key: '$webmq.groups' }, 'E_FORBIDDEN'],
  ] as const)('refuses %s', async (_what, more, code) => {
    const fake = await FakeServer.start(LIMITS)
    await responder(fake)
    const client = await fake.connect()
    expect(await send(fake, client, { ...request, ...more })).toMatchObject({ verb: 'error', id: 'r', code })
  })

  it('refuses more than may wait for a reply', async () => {
    const fake = await FakeServer.start(LIMITS)
    const one = await responder(fake)
    const client = await fake.connect()
    await send(fake, client, request)
    expect(await send(fake, client, { ...request, id: 's' })).toMatchObject({ id: 's', code: 'E_RATE_LIMIT' })
    const [{ request: id = '' } = {}] = one.received('task')
    await send(fake, one, { verb: 'reply', id, isError: false, payload: '3' })
    expect(await send(fake, client, { ...request, id: 't' })).toEqual({ verb: 'ok', id: 't' })
  })

  it('refuses a reply, or an error, that is too large', async () => {
    const fake = await FakeServer.start({ maxPayloadBytes: 4_096 })
    const one = await responder(fake)
    const client = await fake.connect()
    await send(fake, client, request)
    const [{ request: id = '' } = {}] = one.received('task')
    const tooLarge = { verb: 'reply', id, isError: false, payload: 'x'.repeat(4_097) } as const
    expect(await send(fake, one, tooLarge)).toMatchObject({ code: 'E_PAYLOAD_TOO_LARGE' })
    const tooLong = { ...tooLarge, isError: true, payload: 'x'.repeat(2_049) }
    expect(await send(fake, one, tooLong)).toMatchObject({ code: 'E_PAYLOAD_TOO_LARGE' })
  })

  it('needs the grant to publish', async () => {
    const grants: readonly Grant[] = [{ keys: ['sum.#'], allow: ['listen'] }]
    const fake = await FakeServer.start({}, { verifier: new FakeVerifier({ reader: { userId: 'u', grants } }) })
    const client = await fake.connect(offering('reader'))
    await send(fake, client, { verb: 'listen', id: 'l', pattern: 'sum.*', group: 'responders', respond: true })
    expect(await send(fake, client, request)).toMatchObject({ verb: 'error', code: 'E_FORBIDDEN' })
  })
})

describe('the process of the server', () => {
  it('responds, asks and works like a client', async () => {
    const fake = await FakeServer.start()
    const { server } = fake
    const seen: unknown[] = []
    await server.listen('jobs.*', (payload) => seen.push(payload), { group: 'workers' }).ready
    const sum = server.respond('sum.*', async (numbers) => (numbers as number[]).reduce((one, other) => one + other))
    await sum.ready
    await server.respond('fails', () => Promise.reject(new Error('the password is 1234'))).ready
    const client = await member(fake)
    await publishTo(fake, 'jobs.x', 4)
    expect(seen.length + client.received('task').length).toBe(4)
    expect(seen).toHaveLength(2)
    expect(await server.request('sum.x', [1, 2])).toBe(3)
    await expect(server.request('fails', 1)).rejects.toMatchObject({
      code: 'E_RESPONSE',
      message: 'the responder failed',
    })
    await expect(server.request('other', 1)).rejects.toMatchObject({ code: 'E_NO_RESPONDERS' })
    sum.close()
    await expect(server.request('sum.x', [])).rejects.toMatchObject({ code: 'E_NO_RESPONDERS' })
    expect(fake.log.filter(({ level }) => level === 'error')).toMatchObject([{ fields: { key: 'fails' } }])
  })

  // Symptom: the memory of a process grew while its handlers waited for a database. Cause: a handler took no room any more
  // once it had begun.
  it('takes no more than its handlers can have in memory', async () => {
    const fake = await FakeServer.start({ maxPayloadBytes: 16 * 1_048_576, maxOutboxBytes: 64 * 1_048_576 })
    const { server } = fake
    const ends: (() => void)[] = []
    const wait = () => new Promise<void>((resolve) => ends.push(resolve))
    await server.listen('jobs.*', wait, { group: 'workers' }).ready
    const large = Buffer.alloc(15 * 1_048_576)
    for (let count = 1; count <= 4; count++) {
      await server.publish('jobs.x', large)
      await expect.poll(() => ends).toHaveLength(count)
    }
    await expect(server.publish('jobs.x', large)).rejects.toMatchObject({ code: 'E_BROKER_UNAVAILABLE' })
    ends.shift()?.()
    await fake.settled()
    await server.publish('jobs.x', large)
  })

  it.each([
    ['a group without a name', () => ({ group: '' })],
    ['a group with a space', () => ({ group: 'a b' })],
  ])('refuses %s', async (_what, options) => {
    const { server } = await FakeServer.start()
    expect(() => server.listen('k', () => undefined, options())).toThrow(
      expect.objectContaining({ code: 'E_OPTION_INVALID' }),
    )
    expect(() => server.respond('k', () => undefined, options())).toThrow(
      expect.objectContaining({ code: 'E_OPTION_INVALID' }),
    )
  })
})
