import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { FakeClient } from 'webmq-conformance'
import { BrokerHub } from '../../../test/broker-hub.js'
import { FakeServer } from '../../../test/fake-server.js'
import { FakeVerifier } from '../../../test/fake-verifier.js'
import type { Grant } from '../../kernel/identity/index.js'

const ROOMS: readonly Grant[] = [{ keys: ['room.#'], allow: ['listen', 'presence'] }]
const ONE_ROOM: readonly Grant[] = [{ keys: ['room.1'], allow: ['listen', 'presence'] }]
const WATCHED_ROOMS: readonly Grant[] = [{ keys: ['room.#'], allow: ['listen'] }]
const ENTERED_ROOMS: readonly Grant[] = [{ keys: ['room.#'], allow: ['presence'] }]

const verifier = () =>
  new FakeVerifier({
    ada: { userId: 'ada', grants: ROOMS },
    'ada-less': { userId: 'ada', grants: ONE_ROOM },
    bob: { userId: 'bob', grants: ROOMS },
    watcher: { userId: 'ada', grants: WATCHED_ROOMS },
    sensor: { userId: 'sensor', grants: ENTERED_ROOMS },
  })

const offering = (token: string) => ({ subprotocols: ['webmq.v1', `webmq.bearer.${token}`] })

/** What the answer to a request says. */
function answerTo(client: FakeClient, id: string): unknown {
  const answer = client.messages.find((message) => 'id' in message && message.id === id)
  return answer?.verb === 'ok' ? (answer.result ?? 'ok') : answer?.verb === 'error' ? answer.code : undefined
}

async function ask(fake: FakeServer, client: FakeClient, message: object, id = 'q'): Promise<unknown> {
  client.clear()
  client.send({ verb: 'presence', id, key: 'room.1', ...message } as never)
  await fake.settled()
  return answerTo(client, id)
}

const enter = (member: string, data?: string) => ({ op: 'enter', member, ...(data === undefined ? {} : { data }) })

describe('presence', () => {
  it('lets connections enter, get, watch and leave, and tells those who watch [P-14.3] [P-14.5]', async () => {
    const fake = await FakeServer.start()
    const [ada, bob] = [await fake.connect(), await fake.connect()]
    const entered = await ask(fake, ada, enter('m', '{ "name": "Ada" }'))
    expect(entered).toEqual({ id: expect.stringMatching(/^[\w-]{22}$/) })
    const { id } = entered as { id: string }
    const member = { id, data: { name: 'Ada' } }
    expect(await ask(fake, bob, { op: 'get' })).toEqual({ members: [member] })
    expect(await ask(fake, bob, { op: 'watch' })).toEqual({ members: [member] })
    expect(await fake.server.presence('room.1')).toEqual([member])
    bob.clear()
    expect(await ask(fake, ada, enter('m', '2'))).toEqual({ id })
    await vi.waitFor(() =>
      expect(bob.messages).toEqual([{ verb: 'presence', key: 'room.1', update: [{ id, data: 2 }] }]),
    )
    expect(await ask(fake, ada, { op: 'leave' })).toBe('ok')
    await vi.waitFor(() => expect(bob.messages.at(-1)).toEqual({ verb: 'presence', key: 'room.1', leave: [id] }))
    expect(await ask(fake, ada, { op: 'leave' })).toBe('ok')
    expect(await ask(fake, bob, { op: 'unwatch' })).toBe('ok')
    expect(fake.server.stats().presence).toMatchObject({ watchedKeyCount: 0, memberCount: 0 })
  })

  // Symptom: after `enter`, a client that watched did not find itself among the members. Cause: differences wait for 20 ms.
  it('tells a connection that watches of its own changes before the answer, and again with those of others', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    onTestFinished(() => void vi.useRealTimers())
    const fake = await FakeServer.start()
    const [ada, bob] = [await fake.connect(), await fake.connect()]
    await ask(fake, ada, { op: 'watch' })
    await ask(fake, bob, { op: 'watch' })
    const own = async (message: object) => {
      await ask(fake, ada, message)
      return ada.messages.map((told) => ({ ...told, id: undefined, result: undefined, key: undefined }))
    }
    const ok = { verb: 'ok' }
    const id = expect.any(String)
    expect(await own(enter('m', '1'))).toEqual([{ verb: 'presence', enter: [{ id, data: 1 }] }, ok])
    expect(await own(enter('m', '2'))).toEqual([{ verb: 'presence', update: [{ id, data: 2 }] }, ok])
    expect(await own(enter('m', '2')), 'nothing has changed').toEqual([ok])
    expect(await own(enter('n', '3'))).toEqual([{ verb: 'presence', enter: [{ id, data: 3 }], leave: [id] }, ok])
    expect(bob.received('presence')).toEqual([])
    vi.advanceTimersByTime(50)
    expect(bob.received('presence')).toMatchObject([{ enter: [{ data: 3 }] }])
    expect(ada.received('presence')).toMatchObject([{}, { enter: [{ data: 3 }] }])
    expect(await own({ op: 'leave' })).toEqual([{ verb: 'presence', leave: [id] }, ok])
    expect(await own({ op: 'leave' })).toEqual([ok])
    await ask(fake, ada, { op: 'unwatch' })
    expect(await own(enter('m', '1')), 'nobody watches').toEqual([ok])
  })

  it('gives who begins to watch the present, and from then on every change once', async () => {
    const fake = await FakeServer.start()
    const [ada, bob, eve] = [await fake.connect(), await fake.connect(), await fake.connect()]
    await ask(fake, bob, { op: 'watch' })
    bob.clear()
    ada.send({ verb: 'presence', id: '1', key: 'room.1', op: 'enter', member: 'a' })
    await fake.settled()
    // While the first watcher has not been told yet.
    const { members } = (await ask(fake, eve, { op: 'watch' })) as { members: unknown[] }
    expect(members).toHaveLength(1)
    expect(bob.received('presence')).toHaveLength(1)
    eve.clear()
    ada.send({ verb: 'presence', id: '2', key: 'room.1', op: 'leave' })
    await vi.waitFor(() => expect(eve.messages).toHaveLength(1))
    expect(eve.messages).toMatchObject([{ verb: 'presence', leave: [expect.any(String)] }])
  })

  it('is paid for by who causes it: members that are told, and answers with all of them', async () => {
    const fake = await FakeServer.start({ workPerSecond: 1_000, workBurst: 1_000 })
    const [ada, bob, eve] = [await fake.connect(), await fake.connect(), await fake.connect()]
    const watchers = await Promise.all(Array.from({ length: 60 }, () => fake.connect()))
    for (const watcher of watchers) await ask(fake, watcher, { op: 'watch' })
    const data = JSON.stringify('x'.repeat(4_000))
    // 4 kB for 60 watchers are about 240 units: a few changes use up what the connection has.
    for (let count = 0; count < 10; count++) {
      ada.send({ verb: 'presence', id: `${count}`, key: 'room.1', op: 'enter', member: 'a', data })
      bob.send({ verb: 'presence', id: `${count}`, key: 'room.2', op: 'enter', member: 'b', data })
    }
    await vi.waitFor(() => expect(bob.received('ok').length, 'nobody watches this key').toBe(10))
    expect(ada.received('ok').length).toBeLessThan(6)
    eve.send({ verb: 'ping' })
    await fake.settled()
    expect(eve.received('pong')).toHaveLength(1)
  })

  it('shows a key to those who may listen to it, and lets those enter who may be present there [P-14.1]', async () => {
    const fake = await FakeServer.start({}, { verifier: verifier() })
    const ada = await fake.connect(offering('ada'))
    for (const what of [enter('m'), { op: 'get' }, { op: 'watch' }]) {
      expect(await ask(fake, ada, { key: 'other', ...what })).toBe('E_FORBIDDEN')
    }
    const watcher = await fake.connect(offering('watcher'))
    expect(await ask(fake, watcher, enter('m')), 'the right to listen is not enough').toBe('E_FORBIDDEN')
    expect(await ask(fake, watcher, { op: 'watch' })).toEqual({ members: [] })
    const sensor = await fake.connect(offering('sensor'))
    expect(await ask(fake, sensor, { op: 'get' })).toBe('E_FORBIDDEN')
    expect(await ask(fake, sensor, enter('m'))).toMatchObject({ id: expect.any(String) })
    expect(await ask(fake, sensor, { op: 'leave' })).toBe('ok')
    expect(await ask(fake, ada, enter('m'))).toMatchObject({ id: expect.any(String) })
    const bob = await fake.connect(offering('bob'))
    expect(await ask(fake, bob, { op: 'get' })).toMatchObject({ members: [{ userId: 'ada' }] })
  })

  it('ends with the grant for it [P-5.5]', async () => {
    const fake = await FakeServer.start({}, { verifier: verifier() })
    const [ada, bob] = [await fake.connect(offering('ada')), await fake.connect(offering('bob'))]
    for (const key of ['room.1', 'room.2']) {
      await ask(fake, ada, { key, ...enter('m') })
      await ask(fake, ada, { key, op: 'watch' })
    }
    ada.clear()
    ada.send({ verb: 'auth', id: 'a', token: 'ada-less' })
    await fake.settled()
    expect(ada.messages).toMatchObject([
      { verb: 'ok', id: 'a' },
      { verb: 'error', code: 'E_FORBIDDEN', key: 'room.2' },
    ])
    expect(await ask(fake, bob, { key: 'room.2', op: 'get' })).toEqual({ members: [] })
    expect(await ask(fake, bob, { key: 'room.1', op: 'get' })).toMatchObject({ members: [{ userId: 'ada' }] })
  })

  it('ends at once with a connection that says so, and later with one that is lost [P-14.6]', async () => {
    const fake = await FakeServer.start({ presenceLingerMs: 1_000 })
    const [ada, bob, eve] = [await fake.connect(), await fake.connect(), await fake.connect()]
    await ask(fake, ada, enter('a'))
    await ask(fake, bob, enter('b'))
    ada.drop(1000)
    await fake.settled()
    expect(((await ask(fake, eve, { op: 'get' })) as { members: unknown[] }).members).toHaveLength(1)
    bob.drop(1001)
    await fake.settled()
    expect(((await ask(fake, eve, { op: 'get' })) as { members: unknown[] }).members).toHaveLength(1)
    await vi.waitFor(async () => expect(await fake.server.presence('room.1')).toEqual([]))
  })

  it('ends with the grant to be present, while a watch goes on [P-5.5]', async () => {
    const fake = await FakeServer.start({}, { verifier: verifier() })
    const ada = await fake.connect(offering('ada'))
    await ask(fake, ada, enter('m'))
    await ask(fake, ada, { op: 'watch' })
    ada.clear()
    ada.send({ verb: 'auth', id: 'a', token: 'watcher' })
    await vi.waitFor(() =>
      expect(ada.messages).toMatchObject([
        { verb: 'ok', id: 'a' },
        { verb: 'error', code: 'E_FORBIDDEN', key: 'room.1' },
        { verb: 'presence', leave: [expect.any(String)] },
      ]),
    )
  })

  it('limits the members of a user over all connections, those of lost connections included [P-14.8]', async () => {
    const fake = await FakeServer.start({ presenceMaxMembersPerUser: 3 }, { verifier: verifier() })
    const [first, second] = [await fake.connect(offering('ada')), await fake.connect(offering('ada'))]
    expect(await ask(fake, first, enter('m1'))).toMatchObject({ id: expect.any(String) })
    expect(await ask(fake, first, { key: 'room.2', ...enter('m') })).toMatchObject({ id: expect.any(String) })
    first.drop(1001)
    expect(await ask(fake, second, enter('m2'))).toMatchObject({ id: expect.any(String) })
    expect(await ask(fake, second, { key: 'room.3', ...enter('m') })).toBe('E_PRESENCE_LIMIT')
    expect(await ask(fake, second, enter('m2', '1')), 'an update adds none').toMatchObject({ id: expect.any(String) })
    const bob = await fake.connect(offering('bob'))
    expect(await ask(fake, bob, enter('m'))).toMatchObject({ id: expect.any(String) })
    expect(await ask(fake, second, { op: 'leave' })).toBe('ok')
    expect(await ask(fake, second, { key: 'room.3', ...enter('m') })).toMatchObject({ id: expect.any(String) })
  })

  it('refuses what is too much, and what is no JSON [P-14.8]', async () => {
    const fake = await FakeServer.start({ presenceMaxDataBytes: 10, presenceMaxMembersPerKey: 1 })
    const [ada, bob] = [await fake.connect(), await fake.connect()]
    expect(await ask(fake, ada, enter('m', '"0123456789"'))).toBe('E_PAYLOAD_TOO_LARGE')
    expect(await ask(fake, ada, enter('m', 'nonsense'))).toBe('E_PAYLOAD_INVALID')
    expect(await ask(fake, ada, enter('m', '1'))).toMatchObject({ id: expect.any(String) })
    expect(await ask(fake, bob, enter('n', '1'))).toBe('E_PRESENCE_LIMIT')
    expect(bob.received('error')[0]).toMatchObject({ retryable: true })
  })

  it('asks the other nodes before the first answer', async () => {
    const hub = new BrokerHub()
    const [a, b] = [
      await FakeServer.start({}, { broker: hub.createBroker() }),
      await FakeServer.start({}, { broker: hub.createBroker() }),
    ]
    const [ada, bob] = [await a.connect(), await b.connect()]
    await ask(a, ada, enter('m', '1'))
    bob.send({ verb: 'presence', id: 'g', key: 'room.1', op: 'get' })
    bob.send({ verb: 'presence', id: 'w', key: 'room.1', op: 'watch' })
    await vi.waitFor(() => expect(answerTo(bob, 'w')).toEqual({ members: [{ id: expect.any(String), data: 1 }] }))
    expect(answerTo(bob, 'g')).toEqual(answerTo(bob, 'w'))
    await ask(a, ada, enter('m', '2'))
    await vi.waitFor(() => expect(bob.received('presence')).toMatchObject([{ update: [{ data: 2 }] }]))
  })
})

describe('keys of the servers [P-3.6]', () => {
  it('are for nobody to publish to, listen with, or be present at', async () => {
    const fake = await FakeServer.start()
    const client = await fake.connect()
    client.clear()
    client.send({ verb: 'publish', id: 'p', key: '$webmq.presence', echo: true, payload: '1' })
    client.send({ verb: 'listen', id: 'l', pattern: '$webmq.#' })
    client.send({ verb: 'presence', id: 'w', key: '$x', op: 'watch' })
    client.send({ verb: 'history', id: 'h', key: '$webmq.presence' })
    await fake.settled()
    expect(client.messages.map((message) => message.verb === 'error' && message.code)).toEqual(
      new Array(4).fill('E_FORBIDDEN'),
    )
    await expect(fake.server.publish('$x', 1)).rejects.toMatchObject({ code: 'E_KEY_INVALID' })
    expect(() => fake.server.listen('$x', () => undefined)).toThrow('reserved for servers')
  })

  it('are matched by no wildcard', async () => {
    const hub = new BrokerHub()
    const [a, b] = [
      await FakeServer.start({}, { broker: hub.createBroker() }),
      await FakeServer.start({}, { broker: hub.createBroker() }),
    ]
    const listener = await b.listener('#', '*.*', '*.presence')
    const heard: unknown[] = []
    await b.server.listen('#', (payload) => heard.push(payload)).ready
    await ask(a, await a.connect(), enter('m', '1'))
    await vi.waitFor(() => expect(a.broker.stats().acceptedCount).toBeGreaterThan(0))
    await a.server.publish('x.y', 'after')
    await vi.waitFor(() => expect(heard).toEqual(['after']))
    expect(listener.received('message').map(({ key }) => key)).toEqual(['x.y'])
  })
})
