import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { connect, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { itWhere } from 'webmq-conformance'
import { createServer, type ServerOptions, type WebMQServer } from '../src/index.js'
import { FakeServer } from './fake-server.js'
import { FaultyBroker } from './faulty-broker.js'

const GET = 'GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n'

/** Connects, writes, and waits until something was answered. */
async function answered(port: number, text: string): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  socket.write(text)
  await Promise.race([once(socket, 'data'), once(socket, 'close')])
  return socket
}

async function inBatches<T>(count: number, start: () => Promise<T>): Promise<T[]> {
  const results: T[] = []
  while (results.length < count) {
    const size = Math.min(100, count - results.length)
    results.push(...(await Promise.all(Array.from({ length: size }, start))))
  }
  return results
}

const statusOf = async (port: number, path = '/health') =>
  (await fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(20_000) })).status

describe.each(['native', 'ws', 'uws'] as const)('probes over %s', (transport) => {
  let server: WebMQServer
  let port: number
  let sockets: Socket[] = []

  beforeEach(async () => {
    server = createServer({ transport, port: 0, logLevel: 'silent' })
    ;({ port } = await server.start())
  })

  afterEach(async () => {
    for (const socket of sockets) socket.destroy()
    sockets = []
    await server.stop({ drainMs: 0 })
  })

  // 1,024 idle HTTP connections made the probes of everybody else fail. Every further connection was destroyed, and the
  // idle ones had a minute.
  it('are answered while others hold idle connections', async () => {
    sockets = await inBatches(1_100, () => answered(port, `${GET}GET /hea`))
    expect([await statusOf(port), await statusOf(port, '/ready')]).toEqual([200, 200])
    const { connectionCount, droppedCounts } = server.stats().http
    expect(connectionCount).toBeLessThanOrEqual(1_024)
    if (transport !== 'uws') expect(droppedCounts.evicted).toBeGreaterThan(0)
  })

  it('of the endpoint say what it is, and whether a page may connect', async () => {
    const ask = async (headers: Record<string, string>) => {
      const response = await fetch(`http://127.0.0.1:${port}/ws`, { headers })
      expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([426, '*'])
      return await response.json()
    }
    const identity = { code: 'E_HANDSHAKE_INVALID', server: 'webmq', path: '/ws' }
    expect(await ask({})).toMatchObject({ ...identity, originAllowed: true })
    expect(await ask({ origin: 'https://other.example' })).toMatchObject({ ...identity, originAllowed: false })
    // Browsers send no `Origin` to the host of their page; a proxy in between may have changed `Host`.
    const proxied = { 'sec-fetch-site': 'same-origin', referer: 'https://other.example/app' }
    expect(await ask(proxied)).toMatchObject({ ...identity, originAllowed: false })
  })

  it('are answered while others hold requests whose body does not come', async () => {
    const post = 'POST /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n'
    sockets = await inBatches(1_100, () => answered(port, post))
    expect([await statusOf(port), await statusOf(port, '/ready')]).toEqual([200, 200])
  })

  it('are answered while others have not sent a request yet', async () => {
    sockets = await inBatches(3_000, async () => {
      const socket = connect(port, '127.0.0.1')
      socket.on('error', () => undefined)
      await once(socket, 'connect')
      return socket
    })
    expect([await statusOf(port), await statusOf(port, '/ready')]).toEqual([200, 200])
  })

  // uWebSockets.js reads the requests of a connection one by one.
  itWhere(transport !== 'uws')('are answered after someone has sent a thousand requests at once', async () => {
    const socket = await answered(port, GET.repeat(1_000))
    sockets = [socket]
    if (!socket.destroyed) await once(socket.resume(), 'close')
    expect(socket.bytesRead).toBeLessThan(100 * 1_000)
    expect(await statusOf(port)).toBe(200)
  })
})

// Symptom: a balancer that pools connections answered 502 now and then. Cause: idle ones were closed after 5 s, sooner than by any balancer.
it.each(['native', 'ws'] as const)(
  '%s keeps an idle connection for httpKeepAliveMs, and says so',
  async (transport) => {
    const answerOf = async (options: ServerOptions) => {
      const server = createServer({ transport, port: 0, adminPort: 0, logLevel: 'silent', ...options })
      onTestFinished(() => server.stop({ drainMs: 0 }))
      const { port } = await server.start()
      return await Promise.all(
        [port, server.adminAddress?.port ?? 0].map(async (each) => {
          const socket = connect(each, '127.0.0.1').on('error', () => undefined)
          const closed = once(socket, 'close')
          socket.write(GET)
          const [answer] = await once(socket, 'data')
          const [, seconds] = /keep-alive: timeout=(\d+)/i.exec(String(answer)) ?? []
          return { socket, closed, seconds }
        }),
      )
    }
    for (const { socket, seconds } of await answerOf({})) {
      expect(seconds).toBe('65')
      socket.destroy()
    }
    for (const { closed, seconds } of await answerOf({ httpKeepAliveMs: 1_000 })) {
      expect(seconds).toBe('1')
      await closed
    }
  },
)

// With a low limit, sockets without a request made every probe fail: newcomers were dropped until the old ones timed out.
it.each(['native', 'ws'] as const)(
  '%s answers probes while others hold 3,000 sockets without a request, whatever maxConnections is',
  async (transport) => {
    const server = createServer({ transport, port: 0, logLevel: 'silent', maxConnections: 100 })
    const { port } = await server.start()
    const held = await inBatches(3_000, async () => {
      const socket = connect(port, '127.0.0.1')
      socket.on('error', () => undefined)
      await once(socket, 'connect')
      return socket
    })
    try {
      for (let probe = 0; probe < 10; probe++) expect(await statusOf(port)).toBe(200)
    } finally {
      for (const socket of held) socket.destroy()
      await server.stop({ drainMs: 0 })
    }
  },
)

describe('the admin port', () => {
  const ends: (() => unknown)[] = []

  afterEach(async () => {
    for (const end of ends.splice(0).toReversed()) await end()
  })

  async function start(options: ServerOptions = {}): Promise<{ port: number; adminPort: number; server: WebMQServer }> {
    const server = createServer({ port: 0, adminPort: 0, logLevel: 'silent', ...options })
    ends.push(() => server.stop({ drainMs: 0 }))
    const { port } = await server.start()
    return { port, adminPort: server.adminAddress?.port ?? 0, server }
  }

  const json = async (port: number, path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).json()

  it('serves probes and metrics, and takes the metrics from the public port', async () => {
    const { port, adminPort, server } = await start({ demo: true })
    expect(server.adminAddress).toEqual({ host: '127.0.0.1', port: adminPort })
    expect(await json(adminPort, '/health')).toMatchObject({ server: 'webmq', broker: { name: 'memory' } })
    expect(await json(adminPort, '/ready')).toMatchObject({ status: 'ready', broker: { name: 'memory' } })
    expect(await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text()).toContain('webmq_http_connections 0')
    expect([await statusOf(adminPort, '/'), await statusOf(adminPort, '/ws')]).toEqual([404, 404])
    expect(await json(port, '/health')).toEqual({ status: 'ok', server: 'webmq', path: '/ws', originAllowed: true })
    expect(await json(port, '/ready')).toEqual({ status: 'ready' })
    expect([await statusOf(port, '/metrics'), await statusOf(port, '/')]).toEqual([404, 200])
  })

  it('tells pages that have given their own name the address of this machine nothing', async () => {
    const { adminPort } = await start()
    const socket = connect(adminPort, '127.0.0.1')
    socket.write('GET /metrics HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n')
    const [answer] = (await once(socket, 'data')) as [Buffer]
    expect(answer.toString()).toMatch(/^HTTP\/1.1 403 /)
    socket.destroy()
  })

  it('has room for probes while others hold its connections', async () => {
    const { adminPort } = await start()
    const sockets = await inBatches(200, () => answered(adminPort, `${GET}GET /hea`))
    ends.push(() => {
      for (const socket of sockets) socket.destroy()
    })
    expect(await statusOf(adminPort)).toBe(200)
  })

  it('answers while the server waits for its broker and while it drains, and goes with the server', async () => {
    const broker = new FaultyBroker({ isAway: true })
    const { server } = new FakeServer({ adminPort: 0 }, { broker })
    const starting = server.start()
    await expect.poll(() => server.adminAddress).toBeDefined()
    const port = server.adminAddress?.port ?? 0
    expect(await json(port, '/ready')).toMatchObject({ status: 'starting' })
    broker.recover()
    await starting
    expect(await json(port, '/ready')).toMatchObject({ status: 'ready' })
    await server.stop({ drainMs: 0 })
    expect(server.adminAddress).toBeUndefined()
    await expect(statusOf(port)).rejects.toThrow()
  })

  it('runs beside an attached server too', async () => {
    const server = createServer({ adminPort: 0, logLevel: 'silent' })
    ends.push(() => server.stop({ drainMs: 0 }))
    await server.attach(createHttpServer())
    expect(await statusOf(server.adminAddress?.port ?? 0, '/metrics')).toBe(200)
  })

  it('that is taken stops the start, and is named', async () => {
    const { adminPort } = await start()
    const second = createServer({ port: 0, adminPort, logLevel: 'silent' })
    await expect(second.start()).rejects.toMatchObject({
      code: 'E_ADDRESS_IN_USE',
      message: expect.stringContaining(`adminPort ${adminPort} of 127.0.0.1`),
    })
    await second.stop()
  })
})
