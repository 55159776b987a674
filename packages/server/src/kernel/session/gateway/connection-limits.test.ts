import { afterEach, describe, expect, it } from 'vitest'
import type { FakeClient } from 'webmq-conformance'
import { FakeServer } from '../../../../test/fake-server.js'
import { FakeVerifier } from '../../../../test/fake-verifier.js'
import type { ServerOptions } from '../../../doors/options/server-options.js'

const GRANTS = [{ keys: ['#'], allow: ['listen', 'publish'] as const }]
const ONE = '203.0.113.7'
const OTHER = '203.0.113.8'

let fake: FakeServer

afterEach(async () => {
  await fake.server.stop({ drainMs: 0 })
})

const limits = () => fake.server.stats().connectionLimitCounts

describe('connections of one address', () => {
  const start = async (options: ServerOptions = {}, verifier?: FakeVerifier) => {
    fake = await FakeServer.start(
      { insecure: true, maxConnectionsPerAddress: 2, handshakeTimeoutMs: 100, ...options },
      verifier === undefined ? {} : { verifier },
    )
  }
  const connect = (remoteAddress: string, token?: string) =>
    fake.connect({ remoteAddress, ...(token && { headers: { authorization: `Bearer ${token}` } }) })
  const connectThrough = (proxy: string, client: string) =>
    fake.connect({ remoteAddress: proxy, headers: { 'x-forwarded-for': client } })
  const statusOf = (client: FakeClient) => client.rejection?.status ?? (client.isOpen ? 101 : 0)

  it('are refused beyond the limit, until one has closed', async () => {
    await start()
    const [first] = [await connect(ONE), await connect(`::ffff:${ONE}`)]
    const refused = await connect(ONE)
    expect(refused.rejection).toMatchObject({ status: 503, body: expect.stringContaining('"E_CONNECTION_LIMIT"') })
    expect(refused.rejection?.body).toContain('maxConnectionsPerAddress is 2')
    expect(statusOf(await connect(OTHER))).toBe(101)
    first.drop()
    await fake.settled()
    expect([statusOf(await connect(ONE)), statusOf(await connect(ONE))]).toEqual([101, 503])
    expect(limits()).toEqual({ address: 2, user: 0, node: 0 })
  })

  it('count together within a /64, and not at all within this network', async () => {
    await start()
    const statuses = []
    for (const last of [1, 2, 3]) statuses.push(statusOf(await connect(`2001:db8:1:2::${last}`)))
    expect(statuses).toEqual([101, 101, 503])
    expect(statusOf(await connect('2001:db8:1:3::1'))).toBe(101)
    for (const address of ['127.0.0.1', '10.0.0.1', 'fd00::1']) {
      for (let count = 0; count < 5; count++) expect(statusOf(await connect(address))).toBe(101)
    }
  })

  it('count by the client that a trusted proxy names', async () => {
    await start({ trustedProxies: ['10.0.0.0/8'] })
    const clients = [
      await connectThrough('10.0.0.1', ONE),
      await connectThrough('10.0.0.2', `8.8.8.8, ${ONE}, 10.0.0.1`),
    ]
    expect(clients.map(statusOf)).toEqual([101, 101])
    expect([await connectThrough('10.0.0.1', ONE), await connect(ONE)].map(statusOf)).toEqual([503, 503])
    expect(statusOf(await connectThrough('10.0.0.1', OTHER))).toBe(101)
    const statuses = []
    for (const last of [1, 2, 3]) statuses.push(statusOf(await connectThrough('10.0.0.1', `2001:db8:1:2::${last}`)))
    expect(statuses).toEqual([101, 101, 503])
    clients[0]?.drop()
    await fake.settled()
    expect([await connectThrough('10.0.0.3', ONE), await connect(ONE)].map(statusOf)).toEqual([101, 503])
  })

  it('count by the address of the peer when anybody else names another client', async () => {
    await start({ trustedProxies: ['10.0.0.0/8'] })
    const statuses = []
    for (const client of ['8.8.8.1', '8.8.8.2', '10.0.0.1']) statuses.push(statusOf(await connectThrough(ONE, client)))
    expect(statuses).toEqual([101, 101, 503])
    expect(fake.server.stats().malformedForwardedCount).toBe(0)
  })

  it('do not count for a trusted proxy whose header is malformed, which is counted', async () => {
    await start({ trustedProxies: ['10.0.0.0/8'] })
    for (const client of ['unknown', '1.2.3', '']) expect(statusOf(await connectThrough('10.0.0.1', client))).toBe(101)
    expect(fake.server.stats().malformedForwardedCount).toBe(3)
  })

  it('count while their token is examined, and no longer when they have gone away meanwhile', async () => {
    const verifier = new FakeVerifier({ ann: { userId: 'ann', grants: GRANTS } })
    verifier.isSlow = true
    await start({ jwt: { secret: 'x'.repeat(32) }, handshakeTimeoutMs: 1_000 }, verifier)
    const pending = [await connect(ONE, 'ann'), await connect(ONE, 'ann')]
    expect(statusOf(await connect(ONE))).toBe(503)
    for (const client of pending) client.drop()
    await fake.settled()
    // One after the other: the second may count for some time after the first.
    await expect
      .poll(async () => {
        const next = [await connect(ONE), await connect(ONE)]
        const statuses = next.map(statusOf)
        for (const client of next) client.drop()
        await fake.settled()
        return statuses
      })
      .toEqual([101, 101])
    // Late answers open nothing and count nothing.
    verifier.release()
    await fake.settled()
    expect([await connect(ONE), await connect(ONE), await connect(ONE)].map(statusOf)).toEqual([101, 101, 503])
  })

  it('count exactly, whatever becomes of them', async () => {
    const verifier = new FakeVerifier({ ann: { userId: 'ann', grants: GRANTS } })
    await start({ jwt: { secret: 'x'.repeat(32) } }, verifier)
    for (let round = 0; round < 5; round++) {
      await connect(ONE, 'forged')
      await fake.connect({ remoteAddress: ONE, path: '/other' })
      await fake.connect({ remoteAddress: ONE, subprotocols: ['mqtt'] })
      const client = await connect(ONE, 'ann')
      client.drop()
      await fake.settled()
    }
    expect(limits()).toEqual({ address: 0, user: 0, node: 0 })
    expect([await connect(ONE), await connect(ONE), await connect(ONE)].map(statusOf)).toEqual([101, 101, 503])
  })
})

it('without tokens, only clients of this machine may connect through a trusted proxy', async () => {
  fake = await FakeServer.start({ trustedProxies: ['loopback'] })
  const through = async (client: string) => {
    const { rejection } = await fake.connect({ remoteAddress: '127.0.0.1', headers: { 'x-forwarded-for': client } })
    return rejection?.status
  }
  expect([await through('127.0.0.1'), await through(ONE), await through(`127.0.0.1, ${ONE}`)]).toEqual([
    undefined,
    403,
    403,
  ])
})

describe('connections of one user', () => {
  const start = async () => {
    const users = ['ann', 'bob'].map((user) => [user, { userId: user, grants: GRANTS }] as const)
    const verifier = new FakeVerifier({ ...Object.fromEntries(users), nobody: { grants: GRANTS } })
    const jwt = { secret: 'x'.repeat(32) }
    fake = await FakeServer.start({ jwt, maxConnectionsPerUser: 2 }, { verifier })
  }
  const connectAs = (token: string) => fake.connect({ headers: { authorization: `Bearer ${token}` } })

  it('are closed with 4013 beyond the limit, until one has closed', async () => {
    await start()
    const [first] = [await connectAs('ann'), await connectAs('ann')]
    const refused = await connectAs('ann')
    expect(refused.messages).toMatchObject([
      { verb: 'error', code: 'E_CONNECTION_LIMIT', message: expect.stringContaining('maxConnectionsPerUser is 2') },
      { verb: 'bye', code: 4013 },
    ])
    expect(refused.closure?.code).toBe(4013)
    for (const token of ['bob', 'nobody', 'nobody', 'nobody']) {
      expect((await connectAs(token)).received('welcome')).toMatchObject([{ auth: 'done' }])
    }
    first.drop()
    await fake.settled()
    expect((await connectAs('ann')).received('welcome')).toHaveLength(1)
    expect((await connectAs('ann')).closure?.code).toBe(4013)
    expect(limits()).toEqual({ address: 0, user: 2, node: 0 })
  })

  it('count from their token on, once however often they send one', async () => {
    await start()
    const clients = [await fake.connect(), await fake.connect(), await fake.connect()]
    for (const id of ['1', '2', '3']) {
      for (const client of clients.slice(0, 2)) client.send({ verb: 'auth', id, token: 'ann' })
    }
    await fake.settled()
    clients[2]?.send({ verb: 'auth', id: '1', token: 'ann' })
    await fake.settled()
    expect(clients[2]?.messages.slice(1)).toMatchObject([
      { verb: 'error', id: '1', code: 'E_CONNECTION_LIMIT', retryable: true },
      { verb: 'bye', code: 4013 },
    ])
    for (const client of clients.slice(0, 2)) client.drop()
    await fake.settled()
    expect([await connectAs('ann'), await connectAs('ann')].map(({ closure }) => closure)).toEqual([
      undefined,
      undefined,
    ])
    expect((await connectAs('ann')).closure?.code).toBe(4013)
  })
})
