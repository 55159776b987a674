import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer, request, type Server } from 'node:http'
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { freePort, makeCertificate } from 'webmq-services'
import { createServer } from '../../src/create-server.js'
import type { Finding } from '../../src/doors/cli/doctor/target.js'
import type { ServerOptions } from '../../src/doors/options/server-options.js'
import { runInProcess, startInProcess } from './in-process.js'

const SECRET = 'a secret of more than thirty-two bytes'

const ends: (() => Promise<unknown>)[] = []
let folder: string
let port: number
let guardedPort: number

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'webmq-doctor-'))
  port = await serverWith({})
  guardedPort = await serverWith({ jwt: { secret: SECRET, clockToleranceS: 0 } })
})

afterAll(async () => {
  for (const end of ends.splice(0)) await end()
  rmSync(folder, { recursive: true })
})

async function serverWith(options: ServerOptions): Promise<number> {
  const server = createServer({ port: 0, logLevel: 'silent', closeTimeoutMs: 200, ...options })
  const { port: bound } = await server.start()
  ends.push(() => server.stop({ drainMs: 0 }))
  return bound
}

async function listening(server: Server | ReturnType<typeof createTcpServer>): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  ends.push(async () => server.close())
  return (server.address() as AddressInfo).port
}

/** Findings of a run, by name, and its exit code. */
async function doctor(...args: string[]): Promise<{ exitCode: number; [check: string]: unknown }> {
  const { exitCode, stdout, stderr } = await runInProcess(['doctor', '--json', ...args])
  expect(stderr).toBe('')
  return { exitCode, ...findingsOf(stdout) }
}

function findingsOf(text: string): Readonly<Record<string, Finding>> {
  const findings = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Finding)
  return Object.fromEntries(findings.map((finding) => [finding.check, finding]))
}

const finding = (status: string, text: string, advice?: string) => ({
  status,
  text: expect.stringContaining(text),
  ...(advice === undefined ? {} : { advice: expect.stringContaining(advice) }),
})

async function token(...args: string[]): Promise<string> {
  const env = { WEBMQ_JWT_SECRET: SECRET }
  return (await runInProcess(['token', 'create', '-q', '--user', 'ann', ...args], { env })).stdout.trim()
}

describe('webmq-server doctor', () => {
  it('finds nothing wrong with a server that works', async () => {
    const findings = await doctor(`ws://localhost:${port}/ws`, '--origin', `http://localhost:${port}`, '--idle', '50ms')
    expect(findings).toMatchObject({
      exitCode: 0,
      dns: finding('ok', '127.0.0.1'),
      tcp: { text: expect.stringContaining('answers') },
      upgrade: finding('ok', 'accepts'),
      subprotocol: finding('ok', 'webmq.v1'),
      origin: finding('ok', 'may connect'),
      welcome: finding('ok', 'version'),
      identity: finding('skip', 'wants no token'),
      'round trip': { text: expect.stringContaining('5 pings') },
      idle: finding('ok', 'stayed for 0.05 s'),
      health: finding('ok', 'ready'),
      clock: finding('ok', 'agree'),
      'open files': { text: expect.stringMatching(/^the server may open \d+ files$/) },
    })
  })

  it('writes a line per finding, and what to do below it', async () => {
    const { exitCode, stdout } = await runInProcess(['doctor', `127.0.0.1:${port}/other`])
    expect(exitCode).toBe(1)
    expect(stdout).toMatch(/^- {5}dns {10}127\.0\.0\.1 is an address\nok {4}tcp /)
    expect(stdout).toContain(`\nFAIL  upgrade      the server answers 404`)
    expect(stdout).toContain(`\n${' '.repeat(19)}Use ws://127.0.0.1:${port}/ws.\n`)
  })

  it('says when a name does not exist and when nothing listens', async () => {
    expect(await doctor('wss://nobody.invalid/ws')).toMatchObject({ exitCode: 1, dns: finding('fail', 'no address') })
    const closed = await doctor(`ws://127.0.0.1:${await freePort()}/ws`)
    expect(closed).toMatchObject({ exitCode: 1, tcp: finding('fail', 'ECONNREFUSED', 'is the server running') })
    expect(closed.upgrade).toBeUndefined()
  })

  // Symptom: "no address of . was found".
  it.each(['./nofolder', '/nofolder/webmq', '../no/folder', '~/nofolder'])(
    'says that there is no folder %s',
    async (place) => {
      const { exitCode, stderr } = await runInProcess(['doctor', '--production', place])
      expect([exitCode, stderr]).toEqual([2, expect.stringContaining(`there is no folder ${place}`)])
    },
  )

  it('knows a path, an origin and a server that is none', async () => {
    const path = await doctor(`ws://127.0.0.1:${port}/`)
    expect(path).toMatchObject({ exitCode: 1, upgrade: finding('fail', '404 E_PATH_NOT_FOUND', '/ws') })
    const origin = await doctor(`ws://127.0.0.1:${port}/ws`, '--origin', 'https://evil.example')
    expect(origin).toMatchObject({
      exitCode: 1,
      upgrade: finding('ok', 'accepts'),
      origin: finding('fail', 'may not connect', '--origin https://evil.example'),
    })
    const stranger = createHttpServer((_request, response) => response.writeHead(302, { location: '/login' }).end())
    expect(await doctor(`ws://127.0.0.1:${await listening(stranger)}/ws`)).toMatchObject({
      exitCode: 1,
      upgrade: finding('fail', 'a redirect to', 'Use that URL'),
      health: finding('skip', 'something else'),
    })
  })

  it.each([
    [['nonsense url'], 'is not the URL of a server'],
    [['ftp://a.example'], 'is not the URL of a server'],
    [['ws://a:b@c.example/ws'], 'wants a token'],
    [['ws://a.example/ws', '--origin', 'https://b.example/page'], 'browsers send https://b.example'],
    [['ws://a.example/ws', '--ca', '/nowhere/ca.pem'], 'cannot read /nowhere/ca.pem'],
    [['ws://a.example/ws', '--idle', 'long'], 'It must be a time'],
  ])('refuses %j', async (args, message) => {
    expect(await runInProcess(['doctor', ...args])).toMatchObject({
      exitCode: 2,
      stdout: '',
      stderr: expect.stringContaining(message),
    })
  })
})

describe('doctor, about tokens', () => {
  const url = () => `ws://127.0.0.1:${guardedPort}/ws`

  it('reads the claims, and asks the server', async () => {
    const good = await token('--grant', 'chat.#:listen,publish')
    expect(await doctor(url(), '--token', good)).toMatchObject({
      exitCode: 0,
      token: finding('ok', 'expires in'),
      grants: finding('ok', 'listen+publish chat.#'),
      identity: finding('ok', 'accepts the token, user ann'),
    })
  })

  it('says when none was given, and stays without it no longer than it must', async () => {
    const findings = await doctor(url(), '--idle', '10s')
    expect(findings).toMatchObject({
      exitCode: 0,
      identity: finding('warn', 'wants a token', '--token'),
      idle: finding('skip', 'does not stay'),
    })
  })

  it('knows bad tokens before it asks', async () => {
    const good = await token('--grant', 'a:listen')
    const [head = '', , signature = ''] = good.split('.')
    const nowS = Math.floor(Date.now() / 1000)
    const forged = (claims: object) =>
      `${head}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.${signature}`
    const outcomes = await Promise.all([
      doctor(url(), '--token', 'nonsense'),
      doctor(url(), '--token', forged({ exp: nowS - 600, webmq: { grants: [] } })),
      doctor(url(), '--token', forged({ exp: nowS + 600, iat: nowS + 300, webmq: { grants: 'all' } })),
      doctor(url(), '--token', forged({ nbf: nowS + 600 })),
      doctor(url(), '--token', forged({ iat: nowS })),
    ])
    expect(outcomes).toMatchObject([
      { token: finding('fail', 'not a signed JWT') },
      { token: finding('fail', 'expired 10 min ago'), grants: finding('warn', 'grants nothing') },
      { token: finding('fail', 'issued 5 min in the future', 'clocks'), grants: finding('fail', '') },
      { token: finding('fail', 'valid only in 10 min') },
      { token: finding('warn', 'never expires') },
    ])
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({ exitCode: 1, identity: finding('fail', 'refuses the token') })
    }
  })

  it('says when the server ignores tokens', async () => {
    const findings = await doctor(`ws://127.0.0.1:${port}/ws`, '--token', await token('--grant', 'a:listen'))
    expect(findings).toMatchObject({ exitCode: 0, identity: finding('warn', 'ignores tokens') })
  })
})

describe('doctor, about TLS', () => {
  const save = (name: string, text: string) => {
    const path = join(folder, name)
    writeFileSync(path, text)
    return path
  }

  it('accepts a good certificate, and knows expired, foreign and unknown ones', async () => {
    const issuer = await makeCertificate({ names: ['Test authority'], isIssuer: true, days: 100 })
    const ca = save('ca.pem', issuer.cert)
    const certificates = {
      good: await makeCertificate({ names: ['localhost'], issuer, days: 90 }),
      expired: await makeCertificate({ names: ['localhost'], issuer, days: -3 }),
      foreign: await makeCertificate({ names: ['other.example'], issuer, days: 5 }),
    }
    const urls = await Promise.all(
      Object.entries(certificates).map(async ([name, { cert, key }]) => {
        const tls = { certFile: save(`${name}.pem`, cert), keyFile: save(`${name}.key`, key) }
        return `wss://localhost:${await serverWith({ tls, jwt: { secret: SECRET } })}/ws`
      }),
    )
    const [good = '', expired = '', foreign = ''] = urls
    const secret = await token('--grant', 'a:listen')
    expect(await doctor(good, '--ca', ca, '--token', secret)).toMatchObject({
      exitCode: 0,
      tls: finding('ok', 'TLSv1.3'),
      names: finding('ok', 'localhost'),
      expiry: finding('ok', 'expires in 90 days'),
      chain: { status: 'ok' },
      upgrade: finding('ok', 'accepts'),
      identity: finding('ok', 'accepts the token'),
    })
    expect(await doctor(good)).toMatchObject({ exitCode: 1, chain: finding('fail', 'not trusted', '--ca') })
    expect(await doctor(expired, '--ca', ca, '--token', secret)).toMatchObject({
      exitCode: 1,
      expiry: finding('fail', 'expired 3 days ago', 'Renew it'),
      names: { status: 'ok' },
      chain: { status: 'ok' },
      upgrade: finding('ok', 'accepts'),
      identity: finding('warn', 'the token was not sent'),
    })
    expect(await doctor(foreign, '--ca', ca)).toMatchObject({
      exitCode: 1,
      names: finding('fail', 'not for localhost, but for DNS:other.example'),
      expiry: finding('warn', 'expires in 5 days'),
    })
    // The wrong scheme, in both directions.
    expect(await doctor(good.replace('wss:', 'ws:'))).toMatchObject({
      exitCode: 1,
      upgrade: finding('fail', 'speaks TLS', good),
    })
    expect(await doctor(`wss://127.0.0.1:${port}/ws`)).toMatchObject({
      exitCode: 1,
      tls: finding('fail', 'does not speak TLS', `ws://127.0.0.1:${port}/ws`),
    })
  })
})

describe('doctor, behind others', () => {
  const sockets = new Set<Socket>()
  afterEach(() => {
    for (const socket of sockets) socket.destroy()
  })

  it('knows a proxy that removes the Upgrade header', async () => {
    const proxy = createHttpServer((incoming, response) => {
      const { upgrade: _upgrade, connection: _connection, ...headers } = incoming.headers
      const options = { port, path: incoming.url, headers }
      request({ host: '127.0.0.1', ...options }, (answer) => {
        response.writeHead(answer.statusCode ?? 0, { server: 'old-proxy' })
        answer.pipe(response)
      }).end()
    })
    // Without a listener for upgrades, Node hands them to the first one as plain requests.
    const findings = await doctor(`ws://127.0.0.1:${await listening(proxy)}/ws`)
    expect(findings).toMatchObject({
      exitCode: 1,
      upgrade: finding('fail', 'something between removes the Upgrade header', 'proxy_http_version 1.1'),
      health: finding('ok', 'ready'),
    })
  })

  it.each([
    [
      'nodes that log different keys',
      { otherLogPeers: 2, differentPeers: 2 },
      'log rules',
      '2 other nodes log',
      '--history',
    ],
    ['nodes of another version', { differentPeers: 1 }, 'nodes', 'other options, or are of another version', 'upgrade'],
    ['a broker that is too slow', { waitingPublishes: 7 }, 'pacing', '7 publishes wait for its broker', 'CPU'],
  ])('warns of %s', async (_, told, check, text, more) => {
    const node = createHttpServer((_request, response) =>
      response.end(JSON.stringify({ server: 'webmq', status: 'ready', broker: { status: 'up' }, ...told })),
    )
    expect(await doctor(`ws://127.0.0.1:${await listening(node)}/ws`)).toMatchObject({
      health: finding('ok', 'ready'),
      [check]: finding('warn', text, more),
    })
  })

  // Symptom: a node that refused every publish, or drained, was called ready. Cause: the status was looked at last, or not at all.
  it.each([
    [200, { status: 'ready', broker: { status: 'blocked', reason: 'OOM' } }, 'its broker takes no messages: OOM'],
    [
      503,
      { status: 'broker-down', broker: { status: 'down', reason: 'gone' }, otherLogPeers: 1 },
      'its broker is down: gone',
    ],
    [503, { status: 'draining', differentPeers: 1 }, 'it is draining'],
    [503, { status: 'full', broker: { status: 'up' } }, 'it is full'],
    [503, { status: 'of a later version' }, 'of a later version'],
  ])('calls no node ready that answers %i %j', async (status, body, text) => {
    const node = createHttpServer((_request, response) =>
      response.writeHead(status).end(JSON.stringify({ server: 'webmq', ...body })),
    )
    expect(await doctor(`ws://127.0.0.1:${await listening(node)}/ws`)).toMatchObject({
      exitCode: 1,
      health: finding('fail', `not ready: ${text}`),
    })
  })

  it('asks the admin port for what the public one tells nobody', async () => {
    const server = createServer({ port: 0, adminPort: 0, logLevel: 'silent', closeTimeoutMs: 200 })
    const { port: own } = await server.start()
    ends.push(() => server.stop({ drainMs: 0 }))
    const url = `ws://127.0.0.1:${own}/ws`
    expect(await doctor(url)).toMatchObject({ health: finding('ok', 'how it is, it tells its own machine') })
    const admin = `http://127.0.0.1:${server.adminAddress?.port}`
    expect(await doctor(url, '--admin', admin)).toMatchObject({
      health: { status: 'ok', text: 'the server is ready' },
      'open files': { text: expect.stringMatching(/^the server may open/) },
    })
  })

  it('knows a proxy that does not reach its server', async () => {
    const proxy = createHttpServer((_request, response) => response.writeHead(502, { server: 'nginx' }).end('<html>'))
    expect(await doctor(`ws://127.0.0.1:${await listening(proxy)}/ws`)).toMatchObject({
      exitCode: 1,
      upgrade: finding('fail', '502 by nginx', 'does not reach the server'),
    })
  })

  it('knows a balancer that cuts idle connections', async () => {
    const balancer = createTcpServer((client) => {
      const server = connect(port, '127.0.0.1')
      for (const [from, to] of [
        [client, server],
        [server, client],
      ] as const) {
        sockets.add(from)
        from.on('error', () => undefined).pipe(to)
      }
    })
    const url = `ws://127.0.0.1:${await listening(balancer)}/ws`
    const { stdout, ended } = startInProcess(['doctor', '--json', url, '--idle', '60s'])
    // From now on the connection is idle.
    await stdout.until('"round trip"')
    for (const socket of sockets) socket.destroy()
    const { exitCode, stdout: text } = await ended
    expect(exitCode).toBe(1)
    expect(findingsOf(text)).toMatchObject({
      idle: finding('fail', 'something between cut the connection', '--ping-interval'),
    })
  })
})
