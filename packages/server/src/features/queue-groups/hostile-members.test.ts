import { describe, expect, it } from 'vitest'
import type { ClientMessage } from 'webmq-client/protocol'
import type { FakeClient } from 'webmq-conformance'
import { FakeServer } from '../../../test/fake-server.js'
import { FakeVerifier } from '../../../test/fake-verifier.js'
import type { ServerOptions } from '../../doors/options/server-options.js'
import type { Grant } from '../../kernel/identity/index.js'

// What one client did as a member, a responder or a requester took groups, requests and messages from all others.

/** A share of the 65,536 that all have. */
const SHARE = 4_096
const UNHURRIED: ServerOptions = {
  maxListensPerConnection: 10_000,
  maxRequestsPerConnection: 10_000,
  workPerSecond: 1_000_000_000,
  workBurst: 1_000_000_000,
}

const all: readonly Grant[] = [{ keys: ['#'], allow: ['listen', 'publish'] }]
const verifier = new FakeVerifier({
  mallory: { userId: 'mallory', grants: all },
  alice: { userId: 'alice', grants: all },
  listener: { userId: 'bob', grants: [{ keys: ['#'], allow: ['listen'] }] },
})

const start = (options: ServerOptions = {}) => FakeServer.start({ ...UNHURRIED, ...options }, { verifier })
const connect = (fake: FakeServer, user: string) => fake.connect({ subprotocols: ['webmq.v1', `webmq.bearer.${user}`] })

async function send(fake: FakeServer, client: FakeClient, message: ClientMessage) {
  client.send(message)
  await fake.settled()
  return client.messages.at(-1)
}

function join(fake: FakeServer, client: FakeClient, pattern: string, group: string, isResponder = false) {
  const respond = isResponder ? ({ respond: true } as const) : {}
  return send(fake, client, { verb: 'listen', id: 'l', pattern, group, ...respond })
}

function ask(fake: FakeServer, client: FakeClient, key: string) {
  return send(fake, client, { verb: 'request', id: 'last', key, withinMs: 300_000, payload: '1' })
}

describe('requests', () => {
  it('of a session end with it', async () => {
    const fake = await start()
    const [mallory, responder] = [await connect(fake, 'mallory'), await connect(fake, 'mallory')]
    await join(fake, responder, 'evil.#', 'e', true)
    for (let index = 0; index < 100; index++)
      mallory.send({ verb: 'request', id: `r${index}`, key: 'evil.1', payload: '1' })
    await fake.settled()
    expect(fake.server.stats().queueGroups.requestCount).toBe(100)
    mallory.drop()
    await fake.settled()
    expect(fake.server.stats().queueGroups.requestCount).toBe(0)
  })

  it('of one user leave room for those of others, and of the process', async () => {
    const fake = await start()
    const [mallory, alice, silent] = [
      await connect(fake, 'mallory'),
      await connect(fake, 'alice'),
      await connect(fake, 'alice'),
    ]
    await join(fake, silent, 'silent', 's', true)
    for (let index = 0; index < SHARE; index++)
      mallory.send({ verb: 'request', id: `r${index}`, key: 'silent', payload: '1' })
    await fake.settled()
    expect(fake.server.stats().queueGroups.requestCount).toBe(SHARE)
    expect(await ask(fake, mallory, 'silent')).toMatchObject({ verb: 'error', code: 'E_RATE_LIMIT' })
    await fake.server.respond('time', () => 7).ready
    alice.clear()
    await ask(fake, alice, 'time')
    await expect.poll(() => alice.received('reply')).toMatchObject([{ payload: '7' }])
    expect(await fake.server.request('time', 1)).toBe(7)
  })

  it('that one user does not answer leave room for those of other responders', async () => {
    const fake = await start()
    const [mallory, alice] = [await connect(fake, 'mallory'), await connect(fake, 'alice')]
    await join(fake, mallory, 'silent', 's', true)
    for (let index = 0; index < SHARE; index++)
      alice.send({ verb: 'request', id: `r${index}`, key: 'silent', payload: '1' })
    await fake.settled()
    alice.drop()
    await fake.settled()
    // Its requester would wait in vain, and the log would have a line of each.
    const other = await connect(fake, 'alice')
    expect(await ask(fake, other, 'silent')).toMatchObject({ verb: 'error', code: 'E_BROKER_UNAVAILABLE' })
    expect(fake.log.filter(({ level }) => level === 'warn')).toEqual([])
    await fake.server.respond('time', () => 7).ready
    other.clear()
    await ask(fake, other, 'time')
    await expect.poll(() => other.received('reply')).toMatchObject([{ payload: '7' }])
  })
})

describe('queue groups', () => {
  it.each([
    ['of one key', () => 'chat.1', () => 'chat.1'],
    ['of one pattern', () => 'chat.#', () => 'chat.#'],
    ['of patterns that may match one key', (index: number) => `chat.${'*.'.repeat(index % 8)}#`, () => '#.1'],
  ])('%s: one user has at most 16, over all connections; others have more', async (_what, patternOf, last) => {
    const fake = await start({ maxWords: 40 })
    const one = await connect(fake, 'mallory')
    for (let index = 0; index < 16; index++)
      expect(await join(fake, one, patternOf(index), `g${index}`)).toMatchObject({ verb: 'ok' })
    const two = await connect(fake, 'mallory')
    const refused = { verb: 'error', code: 'E_LISTEN_LIMIT', message: expect.stringContaining('may match one key') }
    expect(await join(fake, two, last(), 'g16')).toMatchObject(refused)
    // A second member of a group is no group, and another kind or key is none of these.
    expect(await join(fake, two, patternOf(0), 'g0')).toMatchObject({ verb: 'ok' })
    expect(await join(fake, two, last(), 'g16', true)).toMatchObject({ verb: 'ok' })
    expect(await join(fake, two, 'other', 'g16')).toMatchObject({ verb: 'ok' })
    expect(await join(fake, await connect(fake, 'alice'), last(), 'g16')).toMatchObject({ verb: 'ok' })
    one.drop()
    await fake.settled()
    expect(await join(fake, two, last(), 'g17')).toMatchObject({ verb: 'ok' })
  })

  it('of one user leave room for those of others, over all connections', async () => {
    const fake = await start()
    const one = await connect(fake, 'mallory')
    for (let index = 0; index < SHARE; index++) {
      one.send({ verb: 'listen', id: 'l', pattern: `evil.${index}`, group: 'g' })
      if (index % 100 === 0) await fake.settled()
    }
    await fake.settled()
    expect(fake.server.stats().queueGroups.groupCount).toBe(SHARE)
    const two = await connect(fake, 'mallory')
    expect(await join(fake, two, 'evil.more', 'g')).toMatchObject({ verb: 'error', code: 'E_LISTEN_LIMIT' })
    expect(await join(fake, await connect(fake, 'alice'), 'work', 'w')).toMatchObject({ verb: 'ok' })
    one.drop()
    await fake.settled()
    expect(await join(fake, two, 'evil.more', 'g')).toMatchObject({ verb: 'ok' })
  })
})

describe('a member that has much to read', () => {
  const large = JSON.stringify('x'.repeat(200_000))
  const publish = (fake: FakeServer, client: FakeClient, id: string, payload: string) =>
    send(fake, client, { verb: 'publish', id, key: 'jobs.x', echo: true, payload })

  it('is not closed by large messages: they are refused, and small ones of others are not', async () => {
    const fake = await start()
    const [worker, mallory, alice] = [
      await connect(fake, 'alice'),
      await connect(fake, 'mallory'),
      await connect(fake, 'alice'),
    ]
    await join(fake, worker, 'jobs.*', 'w')
    worker.stopReading()
    const answers = []
    for (let index = 0; index < 5; index++) answers.push(await publish(fake, mallory, `p${index}`, large))
    const refused = { verb: 'error', code: 'E_BROKER_UNAVAILABLE', retryable: true }
    expect(answers).toMatchObject([{ verb: 'ok' }, refused, refused, refused, refused])
    expect(await publish(fake, alice, 'a', '1')).toMatchObject({ verb: 'ok' })
    worker.readOn()
    await fake.settled()
    expect(await publish(fake, mallory, 'p', large)).toMatchObject({ verb: 'ok' })
    expect(worker.received('task').map(({ payload }) => payload)).toEqual([large, '1', large])
  })
})

describe('the group of the writer of a stream', () => {
  const stop = '{"type":"stop"}'

  it('needs the grant to publish to its key, and ends with that', async () => {
    const changing = new FakeVerifier({
      full: { userId: 'bob', grants: all },
      less: { userId: 'bob', grants: [{ keys: ['#'], allow: ['listen'] }] },
    })
    const fake = await FakeServer.start({}, { verifier: changing })
    const less = await connect(fake, 'less')
    expect(await join(fake, less, 'chat.7', 'stream', true)).toMatchObject({ verb: 'error', code: 'E_FORBIDDEN' })
    expect(await join(fake, less, 'chat.7', 'stream')).toMatchObject({ verb: 'ok' })
    const full = await connect(fake, 'full')
    expect(await join(fake, full, 'chat.7', 'stream', true)).toMatchObject({ verb: 'ok' })
    expect(await join(fake, full, 'chat.*', 'stream', true)).toMatchObject({ code: 'E_PATTERN_INVALID' })
    await send(fake, full, { verb: 'auth', id: 'a', token: 'less' })
    expect(full.received('ended')).toMatchObject([{ group: 'stream', pattern: 'chat.7', code: 'E_FORBIDDEN' }])
  })

  it('gets requests at its key before responders of another group', async () => {
    const fake = await start()
    const [writer, bob, reader] = [
      await connect(fake, 'alice'),
      await connect(fake, 'listener'),
      await connect(fake, 'alice'),
    ]
    await join(fake, bob, 'chat.7', 'a', true)
    await join(fake, writer, 'chat.7', 'stream', true)
    for (let index = 0; index < 4; index++)
      await send(fake, reader, { verb: 'request', id: `r${index}`, key: 'chat.7', payload: stop })
    expect([writer.received('task').length, bob.received('task').length]).toEqual([4, 0])
  })
})
