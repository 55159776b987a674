import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { FakeClient } from 'webmq-conformance'
import { FakeServer } from '../../../test/fake-server.js'
import { FakeVerifier } from '../../../test/fake-verifier.js'
import type { ServerOptions } from '../../doors/options/server-options.js'
import type { LimitOverrides } from '../identity/index.js'

const GRANTS = [{ keys: ['#'], allow: ['listen', 'publish'] as const }]

let fake: FakeServer

// A rate gives more on a slow machine: its clock stands still unless a test puts it forward.
beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }))
afterEach(async () => {
  vi.useRealTimers()
  await fake.server.stop({ drainMs: 0 })
})

/** @param users Names of users; each is its own token. A name with limits has them. */
async function start(options: ServerOptions, users: Record<string, LimitOverrides | undefined> = {}) {
  const identities = Object.entries(users).map(([token, limits]) => {
    const [userId = token] = token.split('/')
    return [token, { userId, grants: GRANTS, ...(limits && { limits }) }] as const
  })
  const verifier = new FakeVerifier(Object.fromEntries(identities))
  const jwt = { secret: 'x'.repeat(32) }
  fake = await FakeServer.start({ ...options, ...(identities.length > 0 && { jwt }) }, { verifier })
  if (identities.length === 0) {
    await fake.server.stop({ drainMs: 0 })
    fake = await FakeServer.start(options)
  }
}

const connectAs = (token: string) => fake.connect({ headers: { authorization: `Bearer ${token}` } })

/** Publishes, and returns how many were accepted; the rest was refused with `E_RATE_LIMIT`. */
async function publishMany(client: FakeClient, count: number, payload = 'x'): Promise<number> {
  client.clear()
  for (let index = 0; index < count; index++)
    client.send({ verb: 'publish', id: `p${index}`, key: 'a', payload, echo: false })
  await fake.settled()
  const refusals = client.received('error')
  for (const refusal of refusals) {
    expect(refusal).toMatchObject({ code: 'E_RATE_LIMIT', retryable: true, retryAfterMs: expect.any(Number) })
    expect(refusal.retryAfterMs).toBeGreaterThan(0)
  }
  const accepted = client.received('ok').length
  expect(accepted + refusals.length).toBe(count)
  return accepted
}

const limitsOf = (client: FakeClient) => client.received('welcome')[0]?.limits

describe('publishes per second', () => {
  it('are not limited by default', async () => {
    await start({})
    const client = await fake.connect()
    expect(limitsOf(client)).not.toHaveProperty('maxPublishesPerSecond')
    expect(await publishMany(client, 500)).toBe(500)
  })

  it('of a connection are refused beyond the burst, counted, and told once', async () => {
    await start({ maxPublishesPerSecond: 1, publishBurstMs: 5_000 })
    const client = await fake.connect()
    expect(limitsOf(client)).toMatchObject({ maxPublishesPerSecond: 1, publishBurstMs: 5_000 })
    expect(limitsOf(client)).not.toHaveProperty('maxPublishBytesPerSecond')
    expect(await publishMany(client, 20)).toBe(5)
    expect(await publishMany(client, 5)).toBe(0)
    expect(await publishMany(await fake.connect(), 20)).toBe(5)
    expect(fake.server.stats().publishRateCounts).toEqual({ connection: 35, user: 0, broker: 0 })
    expect(fake.server.stats().refusedCounts.E_RATE_LIMIT).toBe(35)
    const lines = fake.log.filter(({ message }) => message === 'a client has reached a limit')
    expect(lines).toMatchObject([{ fields: { code: 'E_RATE_LIMIT', address: '127.0.0.1' } }])
  })

  it('are accepted again later', async () => {
    await start({ maxPublishesPerSecond: 1_000, publishBurstMs: 10 })
    const client = await fake.connect()
    expect(await publishMany(client, 50)).toBeLessThan(50)
    vi.advanceTimersByTime(1_000)
    expect(await publishMany(client, 1)).toBe(1)
  })

  it('in bytes are limited too', async () => {
    await start({ maxPublishBytesPerSecond: 1_000, publishBurstMs: 1_000 })
    expect(await publishMany(await fake.connect(), 10, 'x'.repeat(400))).toBe(3)
  })

  it('of a user are counted over all its connections', async () => {
    await start({ maxPublishesPerSecondPerUser: 1, publishBurstMs: 8_000 }, { ann: undefined, bob: undefined })
    const [one, other, bob] = [await connectAs('ann'), await connectAs('ann'), await connectAs('bob')]
    expect([await publishMany(one, 5), await publishMany(other, 5), await publishMany(bob, 5)]).toEqual([5, 3, 5])
    expect(fake.server.stats().publishRateCounts).toEqual({ connection: 0, user: 2, broker: 0 })
    one.drop()
    await fake.settled()
    expect(await publishMany(await connectAs('ann'), 5)).toBe(0)
  })
})

describe('limits in a token', () => {
  const OPTIONS = { maxPublishesPerSecond: 2, publishBurstMs: 30_000, maxListensPerConnection: 2 }

  it('raise and lower those of the options, and are told in welcome', async () => {
    await start(OPTIONS, { usual: undefined, more: { maxPublishesPerSecond: 3 }, less: { maxPublishesPerSecond: 1 } })
    const told: unknown[] = []
    const accepted: number[] = []
    for (const token of ['usual', 'more', 'less']) {
      const client = await connectAs(token)
      told.push(limitsOf(client)?.maxPublishesPerSecond)
      accepted.push(await publishMany(client, 100))
    }
    expect(told).toEqual([2, 3, 1])
    expect(accepted).toEqual([60, 90, 30])
  })

  it('limit a user on a server without limits', async () => {
    await start({}, { ann: { maxPublishesPerSecondPerUser: 2, maxListensPerConnection: 1 }, bob: undefined })
    expect(await publishMany(await connectAs('ann'), 10)).toBe(4)
    expect(await publishMany(await connectAs('bob'), 10)).toBe(10)
  })

  it('change with the next token of the session, which is told', async () => {
    await start(OPTIONS, { ann: undefined, 'ann/more': { maxPublishesPerSecond: 50, maxListensPerConnection: 3 } })
    const client = await connectAs('ann')
    expect(await publishMany(client, 100)).toBe(60)
    client.clear()
    client.send({ verb: 'auth', id: '1', token: 'ann/more' })
    for (const pattern of ['a', 'b', 'c', 'd']) client.send({ verb: 'listen', id: pattern, pattern })
    await fake.settled()
    expect(client.received('ok')).toMatchObject([
      { id: '1', result: { limits: { maxPublishesPerSecond: 50, maxListensPerConnection: 3 } } },
      { id: 'a' },
      { id: 'b' },
      { id: 'c' },
    ])
    expect(client.received('error')).toMatchObject([{ id: 'd', code: 'E_LISTEN_LIMIT' }])
    // The old rate would give one.
    vi.advanceTimersByTime(500)
    expect(await publishMany(client, 60)).toBeGreaterThan(5)
  })

  it('allow more connections of one user', async () => {
    await start({ maxConnectionsPerUser: 1 }, { ann: undefined, 'ann/two': { maxConnectionsPerUser: 2 } })
    expect((await connectAs('ann')).closure).toBeUndefined()
    expect((await connectAs('ann')).closure?.code).toBe(4013)
    expect((await connectAs('ann/two')).closure).toBeUndefined()
    expect((await connectAs('ann/two')).closure?.code).toBe(4013)
  })
})

describe('listens of one user', () => {
  const listen = async (client: FakeClient, ...patterns: string[]) => {
    client.clear()
    for (const pattern of patterns) client.send({ verb: 'listen', id: pattern, pattern })
    await fake.settled()
    return client.received('ok').map(({ id }) => id)
  }

  it('are counted over all its connections, and end with them', async () => {
    await start({ maxListensPerUser: 3 }, { ann: undefined, bob: undefined, 'ann/more': { maxListensPerUser: 4 } })
    const [one, other, bob] = [await connectAs('ann'), await connectAs('ann'), await connectAs('bob')]
    expect(await listen(one, 'a', 'b')).toEqual(['a', 'b'])
    expect(await listen(other, 'a', 'c')).toEqual(['a'])
    expect(other.received('error')).toMatchObject([
      { id: 'c', code: 'E_LISTEN_LIMIT', message: expect.stringContaining('maxListensPerUser') },
    ])
    // Again, it is no further one.
    expect(await listen(other, 'a')).toEqual(['a'])
    expect(await listen(bob, 'a', 'b', 'c', 'd')).toEqual(['a', 'b', 'c'])
    expect(await listen(await connectAs('ann/more'), 'a', 'b')).toEqual(['a'])
    one.send({ verb: 'unlisten', id: 'u', pattern: 'a' })
    await fake.settled()
    expect(await listen(other, 'x', 'y')).toEqual([])
    one.drop()
    await fake.settled()
    expect(await listen(other, 'x', 'y')).toEqual(['x'])
  })

  it('that began before anybody had a limit count too', async () => {
    await start({}, { ann: undefined, 'ann/few': { maxListensPerUser: 3 } })
    await listen(await connectAs('ann'), 'a', 'b')
    expect(await listen(await connectAs('ann/few'), 'a', 'b')).toEqual(['a'])
  })
})
