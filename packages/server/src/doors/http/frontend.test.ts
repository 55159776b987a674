import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { Agent, type IncomingMessage, request } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { recordingLogger } from '../../../test/fake-server.js'
import type { Health } from '../../features/observing/health/readiness.js'
import { isOriginAllowed } from '../../kernel/identity/origin.js'
import { isFromThisMachine } from '../../kernel/identity/trusted-proxies.js'
import type { MetricsAudience } from '../options/server-options.js'
import { HttpFrontend } from './frontend.js'

const HEALTH: Health = {
  status: 'ok',
  node: 'abc',
  version: '1.2.3',
  uptimeMs: 5,
  connections: 2,
  broker: { name: 'memory', status: 'up', sinceMs: 4 },
}

const ENDPOINT = { server: 'webmq', path: '/ws', originAllowed: true }

describe('HttpFrontend', () => {
  let folder: string
  let health: () => Health
  let metricsAudience: MetricsAudience
  let frontend: HttpFrontend
  const options = {
    httpKeepAliveMs: 65_000,
    path: '/ws',
    sse: 'on' as const,
    ssePath: '/sse',
    streamsPath: '/streams',
    workPerSecond: 500_000,
  }
  let port: number
  const { logger, lines } = recordingLogger()

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'webmq-http-'))
    await mkdir(join(folder, 'page'))
    await mkdir(join(folder, 'client', 'protocol'), { recursive: true })
    await writeFile(join(folder, 'secret.js'), 'secret')
    await writeFile(join(folder, 'page', 'index.html'), '<!doctype html><p>demo</p>')
    await writeFile(join(folder, 'page', '.hidden.js'), 'hidden')
    await writeFile(join(folder, 'page', 'notes.txt'), 'notes')
    await writeFile(join(folder, 'client', 'protocol', 'index.js'), 'export {}')
    health = () => HEALTH
    metricsAudience = 'local'
    options.workPerSecond = 500_000
    page = onePage
    frontend = new HttpFrontend({
      options,
      health: () => health(),
      callers: {
        isOriginAllowed: (origin, host) => isOriginAllowed(origin, host, ['https://app.example.com'], 'loopback'),
        addressOf: ({ headers }) => String(headers['x-forwarded-for'] ?? '127.0.0.1'),
        isProxy: () => false,
        isLocal: ({ socket, headers }) =>
          isFromThisMachine({ remoteAddress: socket.remoteAddress ?? '', header: (name) => headers[name] }),
      },
      metrics,
      get metricsAudience() {
        return metricsAudience
      },
      hasEndpoint: true,
      demo: { pageFolder: join(folder, 'page'), clientFolder: join(folder, 'client') },
      logger,
    })
    port = await listening(frontend)
  })

  afterEach(async () => {
    frontend.close()
    await new Promise((resolve) => {
      frontend.server.close(resolve)
    })
    await rm(folder, { recursive: true })
  })

  const onePage = () => Promise.resolve({ contentType: 'text/plain; version=0.0.4', text: 'webmq_connections 2\n' })
  let page = onePage
  const metrics = () => page()

  function listening({ server }: HttpFrontend): Promise<number> {
    return new Promise((resolve) => {
      server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
    })
  }

  const get = (path: string, init?: RequestInit) => fetch(`http://127.0.0.1:${port}${path}`, init)

  /** `fetch` tidies a path up before it asks; this asks for exactly what it is told. */
  async function exchange(
    path: string,
    method = 'GET',
    headers: readonly string[] = ['Host: localhost'],
    rest = '',
  ): Promise<{ status: number; head: string; body: string }> {
    const socket = connect(port, '127.0.0.1')
    socket.write([`${method} ${path} HTTP/1.1`, ...headers, 'Connection: close', '', rest].join('\r\n'))
    let answer = ''
    socket.setEncoding('latin1')
    for await (const chunk of socket) answer += chunk
    const [head = '', body = ''] = answer.split('\r\n\r\n')
    return { status: Number(head.split(' ')[1]), head, body }
  }

  const statusOf = async (...request: Parameters<typeof exchange>) => (await exchange(...request)).status

  it('says how it is', async () => {
    const response = await get('/health?from=probe')
    expect(response.status).toBe(200)
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(await response.json()).toEqual({ ...HEALTH, ...ENDPOINT })
  })

  it('says that other nodes differ, and that publishes wait, and is ready', async () => {
    health = () => ({ ...HEALTH, differentPeers: 1, otherLogPeers: 2, waitingPublishes: 3 })
    const ready = await get('/ready')
    expect([ready.status, await ready.json()]).toEqual([
      200,
      { status: 'ready', broker: HEALTH.broker, differentPeers: 1, otherLogPeers: 2, waitingPublishes: 3 },
    ])
  })

  it.each([
    ['starting', 'down', 200, 503, 'starting'],
    ['ok', 'up', 200, 200, 'ready'],
    ['ok', 'blocked', 200, 200, 'ready'],
    ['ok', 'down', 200, 503, 'broker-down'],
    ['draining', 'up', 200, 503, 'draining'],
    ['stopped', 'down', 503, 503, 'stopped'],
  ] as const)(
    'when %s with a broker that is %s, answers /health with %i and /ready with %i',
    async (status, brokerStatus, healthStatus, readyStatus, readiness) => {
      const broker = { name: 'redis', status: brokerStatus, sinceMs: 7 }
      health = () => ({ ...HEALTH, status, broker })
      const answers = [await get('/health'), await get('/ready')]
      expect(answers.map((answer) => answer.status)).toEqual([healthStatus, readyStatus])
      expect(await answers[0]?.json()).toEqual({ ...HEALTH, status, broker, ...ENDPOINT })
      expect(await answers[1]?.json()).toEqual({ status: readiness, broker })
    },
  )

  it('tells strangers its state alone, and all the rest to those who may read the metrics', async () => {
    health = () => ({ ...HEALTH, broker: { name: 'rabbitmq', status: 'down', reason: '10.0.0.5', sinceMs: 7 } })
    const stranger = { 'x-forwarded-for': '203.0.113.7' }
    const told = async (path: string, headers = {}) => (await get(path, { headers })).json()
    for (const [audience, seesDetailsHere, seesDetailsThere] of [
      ['local', true, false],
      ['all', true, true],
      ['off', false, false],
    ] as const) {
      metricsAudience = audience
      for (const [headers, seesDetails] of [[{}, seesDetailsHere] as const, [stranger, seesDetailsThere] as const]) {
        const { broker } = health()
        expect(await told('/health', headers)).toEqual({ ...(seesDetails ? health() : { status: 'ok' }), ...ENDPOINT })
        expect(await told('/ready', headers)).toEqual({ status: 'broker-down', ...(seesDetails ? { broker } : {}) })
      }
    }
  })

  it('tells a page whether it may connect', async () => {
    const allowed = async (headers: Readonly<Record<string, string>>) => {
      const lines = Object.entries({ host: 'localhost:8080', ...headers }).map(([name, value]) => `${name}: ${value}`)
      const { body, head } = await exchange('/health', 'GET', lines)
      expect(head).toMatch(/^access-control-allow-origin: \*\r$/im)
      return (JSON.parse(body) as { originAllowed: boolean }).originAllowed
    }
    expect(await allowed({})).toBe(true)
    expect(await allowed({ origin: 'https://app.example.com' })).toBe(true)
    expect(await allowed({ origin: 'http://localhost:8080' })).toBe(true)
    expect(await allowed({ origin: 'https://evil.example' })).toBe(false)
    expect(await allowed({ origin: 'null' })).toBe(false)
    // Without an origin, as browsers ask for what is on the host of the page.
    expect(await allowed({ 'sec-fetch-site': 'same-origin' })).toBe(true)
    expect(await allowed({ 'sec-fetch-site': 'same-origin', host: 'app.example.com' })).toBe(true)
    expect(await allowed({ 'sec-fetch-site': 'same-origin', host: 'evil.example' })).toBe(false)
    expect(await allowed({ 'sec-fetch-site': 'none', host: 'evil.example' })).toBe(true)
  })

  it('shows metrics to those on this machine, to all, or to nobody', async () => {
    const answer = await get('/metrics')
    expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4')
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(await answer.text()).toBe('webmq_connections 2\n')
    const strangers = [
      ['Host: localhost', 'X-Forwarded-For: 203.0.113.7'],
      ['Host: localhost', 'Forwarded: for=203.0.113.7'],
      ['Host: localhost', 'Via: 1.1 proxy'],
      // A page that has given its own name the address of this machine.
      ['Host: evil.example'],
      ['Host: evil.example:8080'],
      ['Host: localhost.evil.example'],
    ]
    for (const headers of strangers) expect(await statusOf('/metrics', 'GET', headers), headers.join()).toBe(403)
    for (const host of ['localhost', 'LOCALHOST:80', '127.0.0.1:8080', '[::1]:8080']) {
      expect(await statusOf('/metrics', 'GET', [`Host: ${host}`]), host).toBe(200)
    }
    metricsAudience = 'all'
    for (const headers of strangers) expect(await statusOf('/metrics', 'GET', headers)).toBe(200)
    metricsAudience = 'off'
    expect(await statusOf('/metrics')).toBe(404)
  })

  it('serves the page and the client, each with its type, nothing inline, and not again what has not changed', async () => {
    const page = await get('/')
    expect(await page.text()).toContain('demo')
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
    const policy = page.headers.get('content-security-policy') ?? ''
    expect(policy).toContain("script-src 'self'")
    expect(policy).not.toContain('unsafe')
    expect(page.headers.get('x-content-type-options')).toBe('nosniff')
    const script = await get('/client/protocol/index.js')
    expect(script.headers.get('content-type')).toBe('text/javascript; charset=utf-8')
    expect(await script.text()).toBe('export {}')
    const again = await get('/', { headers: { 'if-none-match': page.headers.get('etag') ?? '' } })
    expect(again.status).toBe(304)
  })

  it('answers HEAD like GET, without the body', async () => {
    for (const path of ['/health', '/']) {
      const [head, full] = [await get(path, { method: 'HEAD' }), await get(path)]
      expect(head.status).toBe(200)
      expect(await head.text()).toBe('')
      expect(head.headers.get('content-length')).toBe(full.headers.get('content-length'))
      expect((await full.text()).length).toBe(Number(full.headers.get('content-length')))
    }
  })

  it.each([
    '/nothing.html',
    '/notes.txt',
    '/.hidden.js',
    '/client/',
    '/client',
    '/../secret.js',
    '/client/../secret.js',
    '/client/..%2fsecret.js',
    '/client/%2e%2e/secret.js',
    '/..%2f..%2f..%2fetc/passwd',
    '/client/..%5csecret.js',
    '//secret.js',
    '/%00.js',
    '/%zz.js',
    '/client/protocol',
  ])('does not find %s', async (path) => {
    expect(await statusOf(path)).toBe(404)
  })

  it('says in JSON that it has nothing there', async () => {
    const response = await get('/nothing')
    expect(response.status).toBe(404)
    expect(await response.json()).toMatchObject({ code: 'E_PATH_NOT_FOUND' })
  })

  it.each(['POST', 'PUT', 'DELETE', 'OPTIONS'])('refuses %s', async (method) => {
    const response = await get('/health', { method })
    expect(response.status).toBe(405)
    expect(response.headers.get('allow')).toBe('GET, HEAD')
  })

  it('tells a plain request for the WebSocket endpoint to upgrade', async () => {
    expect(await statusOf('/ws')).toBe(426)
  })

  it.each([
    ['/ws', 426, 'E_HANDSHAKE_INVALID'],
    ['/other', 404, 'E_PATH_NOT_FOUND'],
  ])('tells every page at %s what it is, and whether the page may connect', async (path, status, code) => {
    const response = await get(path, { headers: { origin: 'https://app.example' } })
    expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([status, '*'])
    const { originAllowed } = (await (await get('/health', { headers: { origin: 'https://app.example' } })).json()) as {
      originAllowed: boolean
    }
    expect(await response.json()).toMatchObject({ code, server: 'webmq', path: '/ws', originAllowed })
  })

  // Symptom: one client that asks for /health on one connection took 79 % of a core, and 50 that pipeline heads of 6 kB delayed
  // others by 49 ms. Cause: plain HTTP had no budget.
  it('refuses a client that asks too often, and reads its connection no further until it has paid', async () => {
    options.workPerSecond = 1
    const sockets: Socket[] = []
    frontend.server.on('connection', (socket) => sockets.push(socket))
    const client = connect(port, '127.0.0.1')
    onTestFinished(() => void client.destroy())
    let answers = ''
    client.on('data', (chunk) => {
      answers += String(chunk)
    })
    const asked = 'GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n'
    const statuses = () => [...answers.matchAll(/HTTP\/1.1 (\d+)/g)].map(([, status]) => Number(status))
    client.write(asked + asked)
    await expect.poll(statuses).toEqual([404, 429])
    expect(answers).toContain('E_RATE_LIMIT')
    expect(answers.toLowerCase()).toContain('\r\nretry-after: 1\r\n')
    await expect.poll(() => sockets[0]?.isPaused()).toBe(true)
    expect(frontend.stats().droppedCounts).toEqual({ rate: 1 })
    expect((await get('/nothing', { headers: { 'x-forwarded-for': '203.0.113.7' } })).status, 'another client').toBe(
      404,
    )
    const probe = await get('/health')
    expect(probe.status, 'a probe from where many share an address').toBe(200)
    await probe.text()
    client.write(asked)
    await expect.poll(statuses).toHaveLength(3)
  })

  // Symptom: a client that went on after its hundredth request took a whole core. Cause: from then on, Node answered each one with 503
  // by itself (`maxRequestsPerSocket`), and kept the connection.
  it('answers the requests of a connection itself, however many', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    onTestFinished(() => agent.destroy())
    const statuses = new Set<number | undefined>()
    let connectionCount = 0
    frontend.server.on('connection', () => connectionCount++)
    for (let count = 0; count <= 100; count++) {
      const [response] = (await once(request({ port, path: '/health', agent }).end(), 'response')) as [IncomingMessage]
      statuses.add(response.statusCode)
      await once(response.resume(), 'end')
    }
    expect({ statuses: [...statuses], connectionCount }).toEqual({ statuses: [200], connectionCount: 1 })
  })

  it('serves no page and no endpoint unless it is asked to', async () => {
    const bare = new HttpFrontend({
      options,
      health,
      callers: { isOriginAllowed: () => true, isLocal: () => true, isProxy: () => false, addressOf: () => '127.0.0.1' },
      metrics,
      metricsAudience,
      hasEndpoint: false,
      logger,
    })
    const barePort = await listening(bare)
    for (const path of ['/', '/ws']) expect((await fetch(`http://127.0.0.1:${barePort}${path}`)).status).toBe(404)
    bare.close()
    bare.server.close()
  })

  it.each([
    ['a body that does not come', 'GET', ['Host: localhost', 'Content-Length: 5'], ''],
    ['a body without an end', 'GET', ['Host: localhost', 'Transfer-Encoding: chunked'], ''],
    ['a body that is announced', 'GET', ['Host: localhost', 'Content-Length: 5', 'Expect: 100-continue'], ''],
    ['a long query', 'GET', ['Host: localhost'], '', `/health?${'q'.repeat(8_000)}`],
  ] as const)(
    'answers a request with %s, and waits for no more of it',
    async (_, method, headers, rest, path?: string) => {
      const lines = [...headers, 'Connection: keep-alive']
      expect(await statusOf(path ?? '/health', method, lines, rest)).toBe(200)
    },
  )

  it.each([
    ['CONNECT', 'localhost:80', 0],
    ['TRACE', '/health', 405],
    ['GET', 'http://localhost/health', 404],
    ['GET', `/health?${'q'.repeat(20_000)}`, 431],
    ['BREW', '/health', 400],
  ])('does not serve %s %.30s', async (method, path, status) => {
    const answer = await statusOf(path, method)
    expect(Number.isNaN(answer) ? 0 : answer).toBe(status)
  })

  it('renders a page of metrics once for those who ask at the same time', async () => {
    let count = 0
    metricsAudience = 'all'
    page = async () => ({ contentType: 'text/plain', text: `${++count}` })
    const pages = await Promise.all(Array.from({ length: 20 }, async () => (await get('/metrics')).text()))
    expect(new Set(pages).size).toBe(count)
    expect(count).toBeLessThan(10)
  })

  it('reveals nothing of a bug', async () => {
    health = () => {
      throw new Error('secret of the house')
    }
    const response = await get('/health')
    expect(response.status).toBe(500)
    expect(await response.text()).not.toContain('secret')
    expect(lines.at(-1)).toMatchObject({ level: 'error', fields: { err: { message: 'secret of the house' } } })
  })
})
