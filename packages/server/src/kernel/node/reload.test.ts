import { generateKeyPairSync } from 'node:crypto'
import { createServer as createHttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { SignJWT } from 'jose'
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { FakeServer } from '../../../test/fake-server.js'
import { Backend } from '../../../test/hooks/backend.js'
import { createServer } from '../../create-server.js'
import type { ServerOptions } from '../../doors/options/server-options.js'
import type { OptionSpec } from '../../doors/options/spec.js'
import { OPTIONS } from '../../doors/options/table.js'
import { Signer } from '../../features/hooks/webhooks/client.js'
import { createLogger } from '../base/logger.js'

const SECRET = 'a shared secret of more than thirty-two bytes'
const OTHER_SECRET = 'another secret of more than thirty-two bytes'
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const PEM = ec.publicKey.export({ type: 'spki', format: 'pem' }).toString()
const STRANGER = '203.0.113.7'

/** A change of one option, and what a client sees before and after it. */
interface Case {
  readonly from?: ServerOptions
  readonly to: ServerOptions
  readonly see: (fake: FakeServer) => Promise<unknown>
  readonly before: unknown
  readonly after: unknown
}

const NOW_S = () => Math.floor(Date.now() / 1_000)
const hs256 = (claims: object = {}, secret = SECRET, alg = 'HS256') =>
  new SignJWT({ exp: NOW_S() + 60, ...claims }).setProtectedHeader({ alg }).sign(Buffer.from(secret))

/** What becomes of a connection with this token: welcomed, or its close code. */
const outcomeOf = (token: () => Promise<string>) => async (fake: FakeServer) => {
  const client = await fake.connect({ headers: { authorization: `Bearer ${await token()}` } })
  await vi.waitFor(() => expect(client.closure ?? client.received('welcome')[0]).toBeDefined())
  return client.closure?.code ?? 'welcome'
}

/** Requests of one client; the answer to the last one. */
const lastAnswer = (requestsOf: () => readonly object[]) => async (fake: FakeServer) => {
  const requests = requestsOf()
  const client = await fake.connect()
  for (const [index, request] of requests.entries()) client.send({ id: `q${index}`, ...request } as never)
  await fake.settled()
  const last = client.messages.findLast((message) => 'id' in message && message.id === `q${requests.length - 1}`)
  return last?.verb === 'error' ? last.code : last?.verb
}

let memberCount = 0
/** A member that nobody else is. */
const enter = (key: string, data?: string) => {
  return { verb: 'presence', op: 'enter', key, member: `m${++memberCount}`, data }
}
/** The limits of `welcome` are those that sessions use. */
const limit = (name: string, before: number, after: number): Case => ({
  from: { [name]: before },
  to: { [name]: after },
  see: async (fake) => (await fake.connect()).received('welcome')[0]?.limits[name as 'maxWords'],
  before,
  after,
})
const presence = (name: string, value: number, requests: () => readonly object[]): Case => ({
  to: { [name]: value },
  see: lastAnswer(requests),
  before: 'ok',
  after: name === 'presenceMaxDataBytes' ? 'E_PAYLOAD_TOO_LARGE' : 'E_PRESENCE_LIMIT',
})
const refusedAfter = { before: 'welcome', after: 4501 }

const API_KEYS = ['the-first-of-the-keys', 'the-second-of-the-keys']
/** Is told of connections. */
const backend = await Backend.start()
afterAll(() => backend[Symbol.asyncDispose]())
const webhook = (secret: string): ServerOptions => ({ webhook: { url: backend.url, events: ['connected'], secret } })

/** The secret that has signed the notice of a new connection. */
const signingSecret = async (fake: FakeServer) => {
  await fake.connect()
  await fake.settled()
  const { headers, body } = await vi.waitFor(() => backend.requests.pop() ?? expect.fail())
  const [id, timestampS] = [`${headers['webhook-id']}`, Number(headers['webhook-timestamp'])]
  const isSigner = (secret: string) => new Signer(secret).sign(id, timestampS, body) === headers['webhook-signature']
  return [SECRET, OTHER_SECRET].find(isSigner)
}

/** What the HTTP API answers to the second key, while the first one is replaced. */
const withSecondKey = async (fake: FakeServer) =>
  await statusOf(fake, '/api/info', { authorization: `Bearer ${API_KEYS[1]}` })

/** Another value for every option that may change, and how it is seen. */
const CASES: Readonly<Record<string, Case>> = {
  apiKeys: {
    from: { apiKeys: API_KEYS.slice(0, 1) },
    to: { apiKeys: API_KEYS.slice(1) },
    see: withSecondKey,
    before: 401,
    after: 200,
  },
  authTimeoutMs: {
    from: { jwt: { secret: SECRET }, authTimeoutMs: 60_000 },
    to: { jwt: { secret: SECRET }, authTimeoutMs: 10 },
    see: async (fake) => {
      const client = await fake.connect()
      return await vi.waitFor(() => client.closure?.code ?? expect.fail(), { timeout: 2_000 }).catch(() => 'open')
    },
    before: 'open',
    after: 4002,
  },
  broker: {
    from: { broker: 'redis://webmq:old@127.0.0.1' },
    to: { broker: 'redis://webmq:new@127.0.0.1' },
    see: async (fake) => Reflect.get(fake.broker, 'address'),
    before: undefined,
    after: 'redis://webmq:new@127.0.0.1',
  },
  drainDelayMs: stopCase('drainDelayMs', 1, 2),
  drainPerSecond: stopCase('drainPerSecond', 100, 200),
  drainTimeoutMs: stopCase('drainTimeoutMs', 100, 200),
  'jwt.algorithms': {
    from: { jwt: { secret: SECRET } },
    to: { jwt: { secret: SECRET, algorithms: ['HS512'] } },
    see: outcomeOf(() => hs256()),
    ...refusedAfter,
  },
  'jwt.audience': {
    from: { jwt: { secret: SECRET } },
    to: { jwt: { secret: SECRET, audience: 'me' } },
    see: outcomeOf(() => hs256()),
    ...refusedAfter,
  },
  'jwt.clockToleranceS': {
    from: { jwt: { secret: SECRET, clockToleranceS: 60 } },
    to: { jwt: { secret: SECRET, clockToleranceS: 0 } },
    see: outcomeOf(() => hs256({ exp: NOW_S() - 20 })),
    before: 'welcome',
    after: 4009,
  },
  'jwt.issuer': {
    from: { jwt: { secret: SECRET } },
    to: { jwt: { secret: SECRET, issuer: 'me' } },
    see: outcomeOf(() => hs256()),
    ...refusedAfter,
  },
  'jwt.jwksUrl': {
    from: { jwt: { secret: SECRET } },
    to: { jwt: { jwksUrl: 'http://127.0.0.1:1/' } },
    see: outcomeOf(() => hs256()),
    ...refusedAfter,
  },
  'jwt.maxAgeS': {
    from: { jwt: { secret: SECRET } },
    to: { jwt: { secret: SECRET, maxAgeS: 60 } },
    see: outcomeOf(() => hs256({ iat: NOW_S() - 600 })),
    before: 'welcome',
    after: 4009,
  },
  'jwt.publicKey': {
    from: { jwt: { secret: SECRET } },
    to: { jwt: { secret: SECRET, publicKey: PEM } },
    see: outcomeOf(() => new SignJWT({}).setProtectedHeader({ alg: 'ES256' }).sign(ec.privateKey)),
    before: 4501,
    after: 'welcome',
  },
  'jwt.requireExp': {
    from: { jwt: { secret: SECRET } },
    to: { jwt: { secret: SECRET, requireExp: true } },
    see: outcomeOf(() => hs256({ exp: undefined })),
    ...refusedAfter,
  },
  'jwt.secret': {
    from: { jwt: { secret: [SECRET, OTHER_SECRET] } },
    to: { jwt: { secret: OTHER_SECRET } },
    see: outcomeOf(() => hs256()),
    ...refusedAfter,
  },
  'jwt.type': {
    from: { jwt: { secret: SECRET } },
    to: { jwt: { secret: SECRET, type: 'at+jwt' } },
    see: outcomeOf(() => hs256()),
    ...refusedAfter,
  },
  logLevel: {
    to: { logLevel: 'debug' },
    // The fake server has a logger of its own; see below.
    see: async () => undefined,
    before: undefined,
    after: undefined,
  },
  maxConnectionsPerAddress: {
    from: { insecure: true, maxConnectionsPerAddress: 100 },
    to: { insecure: true, maxConnectionsPerAddress: 1 },
    see: async (fake) => (await fake.connect({ remoteAddress: STRANGER })).rejection?.status,
    before: undefined,
    after: 503,
  },
  maxConnectionsPerUser: {
    from: { jwt: { secret: SECRET } },
    to: { jwt: { secret: SECRET }, maxConnectionsPerUser: 1 },
    see: outcomeOf(() => hs256({ sub: 'ada' })),
    before: 'welcome',
    after: 4013,
  },
  maxHashes: limit('maxHashes', 3, 2),
  maxListensPerConnection: limit('maxListensPerConnection', 7, 8),
  maxRequestsPerConnection: limit('maxRequestsPerConnection', 7, 8),
  maxSearchListensPerConnection: limit('maxSearchListensPerConnection', 7, 8),
  maxWords: limit('maxWords', 7, 8),
  metrics: {
    to: { metrics: 'off' },
    see: async (fake) => await statusOf(fake, '/metrics'),
    before: 200,
    after: 404,
  },
  origins: {
    from: { insecure: true },
    to: { insecure: true, origins: ['https://app.example'] },
    see: async (fake) => (await fake.connect({ headers: { origin: 'https://app.example' } })).rejection?.status,
    before: 403,
    after: undefined,
  },
  presenceMaxBytes: presence('presenceMaxBytes', 1, () => [enter('k')]),
  presenceMaxDataBytes: presence('presenceMaxDataBytes', 3, () => [enter('k', '"four"')]),
  presenceMaxKeysPerConnection: presence('presenceMaxKeysPerConnection', 1, () => [enter('k1'), enter('k2')]),
  presenceMaxMembers: presence('presenceMaxMembers', 0, () => [enter('k')]),
  presenceMaxMembersPerKey: presence('presenceMaxMembersPerKey', 1, () => [enter('k'), enter('k')]),
  presenceMaxMembersPerUser: {
    from: { jwt: { secret: SECRET } },
    to: { jwt: { secret: SECRET }, presenceMaxMembersPerUser: 0 },
    see: async (fake) => {
      const webmq = { grants: [{ keys: ['#'], allow: ['presence'] }] }
      const client = await fake.connect({
        headers: { authorization: `Bearer ${await hs256({ sub: 'ada', webmq })}` },
      })
      await vi.waitFor(() => expect(client.received('welcome')).toHaveLength(1))
      client.send({ id: 'q', ...enter('k') } as never)
      await fake.settled()
      return client.received('error')[0]?.code ?? 'ok'
    },
    before: 'ok',
    after: 'E_PRESENCE_LIMIT',
  },
  'webhook.secret': {
    from: webhook(SECRET),
    to: webhook(OTHER_SECRET),
    see: signingSecret,
    before: SECRET,
    after: OTHER_SECRET,
  },
  workBurst: limit('workBurst', 2_000, 3_000),
  workPerSecond: limit('workPerSecond', 2_000, 3_000),
}

/** What the server says of its own stop. */
function stopCase(name: 'drainDelayMs' | 'drainPerSecond' | 'drainTimeoutMs', before: number, after: number): Case {
  return {
    from: { [name]: before },
    to: { [name]: after },
    see: async (fake) => Reflect.get(fake.server.options, name),
    before,
    after,
  }
}

async function statusOf(fake: FakeServer, path: string, headers: Record<string, string> = {}): Promise<number> {
  const http = createHttpServer((request, response) => fake.server.handleRequest(request, response))
  await new Promise<void>((resolve) => {
    http.listen(0, '127.0.0.1', resolve)
  })
  try {
    return (await fetch(`http://127.0.0.1:${(http.address() as AddressInfo).port}${path}`, { headers })).status
  } finally {
    http.closeAllConnections()
    http.close()
  }
}

async function start(options: ServerOptions): Promise<FakeServer> {
  const fake = await FakeServer.start(options)
  onTestFinished(() => fake.server.stop({ drainMs: 0, delayMs: 0 }))
  Reflect.set(fake.broker, 'setAddress', (address: string) => Reflect.set(fake.broker, 'address', address))
  return fake
}

describe('server.reload', () => {
  it('knows a case for every option that says that it is reloadable', () => {
    const reloadable = OPTIONS.filter((spec: OptionSpec) => spec.reloadable === true).map(({ name }) => name)
    expect(Object.keys(CASES).sort()).toEqual([...reloadable].sort())
  })

  it.each(Object.entries(CASES))('changes %s while the server runs', async (name, { from = {}, to, ...seen }) => {
    const fake = await start(from)
    expect(await seen.see(fake)).toEqual(seen.before)
    const { changed, needRestart } = fake.server.reload(to)
    expect(changed).toContain(name)
    expect(needRestart).toEqual([])
    expect(await seen.see(fake)).toEqual(seen.after)
    expect(fake.log).toContainEqual({ level: 'info', fields: { option: name }, message: 'the option has changed' })
  })

  it('changes the level of its own logger', async () => {
    const lines: string[] = []
    const logger = createLogger({ destination: { write: (line) => lines.push(line) } })
    const server = createServer({ logger, logLevel: 'info' })
    server.reload({ logger, logLevel: 'warn' })
    expect(lines).toEqual([])
    server.reload({ logger, logLevel: 'info' })
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ option: 'logLevel' }])
    await server.stop()
  })

  it('names what cannot change, and leaves it', async () => {
    const fake = await start({ origins: ['https://a.example'] })
    const to = { port: 9_000, history: ['#=5'], jwt: { secret: SECRET } }
    expect(fake.server.reload(to)).toEqual({
      changed: ['origins'],
      needRestart: ['port', 'history', 'jwt.secret', 'jwt.clockToleranceS', 'jwt.requireExp', 'jwt.algorithms'],
    })
    expect((await fake.connect()).received('welcome')).toMatchObject([{ auth: 'none' }])
    expect(fake.log).toContainEqual({
      level: 'warn',
      fields: { option: 'port' },
      message: 'the option changes with the next start',
    })
  })

  it('changes nothing when an option is not allowed, or a key cannot be used', async () => {
    const fake = await start({ jwt: { secret: SECRET }, maxWords: 7 })
    for (const bad of [
      { maxWords: 0 },
      { jwt: { secret: [] } },
      { jwt: { secret: 'short' } },
      { jwt: { secret: OTHER_SECRET, publicKey: 'no key' } },
      { jwt: { jwksUrl: 'http://id.example.com/' } },
      { prot: 1 },
    ]) {
      expect(() => fake.server.reload({ maxWords: 8, ...bad } as ServerOptions)).toThrow(
        expect.objectContaining({ code: expect.stringMatching(/^E_(OPTION_INVALID|INSECURE)$/) }),
      )
    }
    expect(await outcomeOf(() => hs256())(fake)).toBe('welcome')
    expect((await fake.connect()).received('welcome')[0]?.limits.maxWords).toBe(7)
  })

  it('takes no other place for the broker, and does not become insecure', async () => {
    const fake = await start({ broker: 'redis://webmq:old@127.0.0.1' })
    for (const broker of ['redis://webmq:old@10.0.0.1', 'nats://webmq:old@127.0.0.1', 'memory']) {
      expect(fake.server.reload({ broker })).toMatchObject({ changed: [], needRestart: ['broker'] })
    }
    expect(fake.server.reload({ broker: 'redis://webmq:old@127.0.0.1', insecure: true }).needRestart).toEqual([
      'insecure',
    ])
  })

  it('leaves open connections alone when their key is gone', async () => {
    const fake = await start({ jwt: { secret: SECRET } })
    const client = await fake.connect({ headers: { authorization: `Bearer ${await hs256()}` } })
    await vi.waitFor(() => expect(client.received('welcome')).toHaveLength(1))
    fake.server.reload({ jwt: { secret: OTHER_SECRET } })
    client.send({ verb: 'auth', id: 'a', token: await hs256() })
    await vi.waitFor(() => expect(client.closure?.code).toBe(4501))
  })
})
