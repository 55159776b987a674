import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it, onTestFinished } from 'vitest'
import { createServer, type ServerOptions } from 'webmq-server'
import { type BalancerName, freePort, startLoadBalancer } from 'webmq-services'
import { WebSocket } from 'ws'
import { recordingLogger } from './fake-server.js'

/** Of this machine too, so that a client can have it, but not the balancer's. */
const CLIENT = '127.0.0.7'
const API_KEY = 'k'.repeat(32)

async function serverBehind(program: BalancerName, proxyProtocol: boolean, options: ServerOptions) {
  const { logger } = recordingLogger()
  const server = createServer({ port: 0, logger, jwt: { secret: 'x'.repeat(32) }, apiKeys: [API_KEY], ...options })
  const { port } = await server.start()
  const balancer = await startLoadBalancer({ ports: [port], program, proxyProtocol })
  const connect = async () => {
    const socket = new WebSocket(`ws://127.0.0.1:${balancer.port}/ws`, { localAddress: CLIENT })
    const opened = await Promise.race([once(socket, 'open'), once(socket, 'error').then(() => undefined)])
    return opened === undefined ? undefined : socket
  }
  return {
    connect,
    /** Addresses as the API lists them; the request itself takes the same way. */
    addresses: async () => {
      const headers = { authorization: `Bearer ${API_KEY}` }
      const response = await fetch(`${balancer.url}/api/connections`, { headers })
      const { connections } = (await response.json()) as { connections: { address: string }[] }
      return connections.map(({ address }) => address)
    },
    [Symbol.asyncDispose]: async () => {
      await balancer.stop()
      await server.stop({ drainMs: 0 })
    },
  }
}

const TRUSTING = { trustedProxies: ['127.0.0.1'] }

it.each([
  ['haproxy', 'by X-Forwarded-For', false, { ...TRUSTING, transport: 'native' }],
  ['haproxy', 'by the PROXY protocol', true, { ...TRUSTING, transport: 'native', proxyProtocol: true }],
  ['nginx', 'by X-Forwarded-For', false, { ...TRUSTING, transport: 'native' }],
] as const)('behind %s, the client is known %s', async (program, _how, proxyProtocol, options) => {
  await using behind = await serverBehind(program, proxyProtocol, options)
  // The balancer asks /ready first, through the same port.
  await expect.poll(async () => (await behind.connect()) !== undefined).toBe(true)
  expect(await behind.addresses()).toEqual([CLIENT])
})

it('behind HAProxy, its header is not believed without --trusted-proxy', async () => {
  await using behind = await serverBehind('haproxy', false, { transport: 'native' })
  await expect.poll(async () => (await behind.connect()) !== undefined).toBe(true)
  expect(await behind.addresses()).toEqual(['127.0.0.1'])
})

// Symptom: behind nginx, clients were away for half a minute with 502 while nodes restarted in turn. Cause: it took each
// node that had refused once for dead for 10 s, and passed the 503 of a node that drains on.
it.each(['haproxy', 'nginx'] as const)(
  'behind %s, no client is refused while nodes drain, go and come back in turn',
  { timeout: 60_000 },
  async (program) => {
    const { logger } = recordingLogger()
    const start = async (port: number) => {
      const server = createServer({ port, logger, transport: 'native', jwt: { secret: 'x'.repeat(32) } })
      return { server, port: (await server.start()).port }
    }
    // No other test gets them while a node is away.
    const ports = await Promise.all([freePort(), freePort(), freePort()])
    const nodes = await Promise.all(ports.map(start))
    onTestFinished(async () => void (await Promise.all(nodes.map(({ server }) => server.stop({ drainMs: 0 })))))
    await using balancer = await startLoadBalancer({ ports: nodes.map(({ port }) => port), program })
    const attempt = async () => {
      const socket = new WebSocket(`ws://127.0.0.1:${balancer.port}/ws`)
      const outcome = await once(socket, 'open').then(() => 'open', String)
      socket.on('error', () => undefined).terminate()
      return outcome
    }
    await expect.poll(attempt).toBe('open')
    const outcomes = new Map<string, number>()
    let isOver = false
    const client = async () => {
      while (!isOver) {
        const outcome = await attempt()
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
      }
    }
    const clients = [client(), client(), client(), client()]
    const more = async (count: number) => {
      const before = outcomes.get('open') ?? 0
      await expect.poll(() => outcomes.get('open') ?? 0).toBeGreaterThan(before + count)
    }
    for (const [index, { server, port }] of nodes.entries()) {
      await server.stop({ drainMs: 300 })
      await sleep(300)
      nodes[index] = await start(port)
      await sleep(500)
      // However slow the machine is: the share of those that are cut depends on it.
      await more(100)
    }
    isOver = true
    await Promise.all(clients)
    const opened = outcomes.get('open') ?? 0
    // HAProxy ends the sessions of a node that it takes for down (`shutdown-sessions`), on a busy machine also one whose upgrade is
    // under way. That is no answer: clients try again at once.
    const cut = outcomes.get('Error: socket hang up') ?? 0
    outcomes.delete('Error: socket hang up')
    expect([...outcomes.keys()]).toEqual(['open'])
    expect(opened).toBeGreaterThan(20)
    expect(cut).toBeLessThan(opened / 20)
  },
)

// Symptom: 6 of 40 EventSources of a browser ended in ERR_TOO_MANY_REDIRECTS. A balancer reuses its connections to the nodes, and a
// request that was not the first of its connection was sent to a new one.
it.each([
  ['haproxy', 'native'],
  ['haproxy', 'ws'],
  ['nginx', 'native'],
] as const)(
  'behind %s, event streams open over connections that have served requests (%s)',
  async (program, transport) => {
    const { logger } = recordingLogger()
    const server = createServer({ port: 0, logger, ...TRUSTING, transport, insecure: true })
    const { port } = await server.start()
    onTestFinished(() => server.stop({ drainMs: 0 }))
    await using balancer = await startLoadBalancer({ ports: [port], program })
    // Sessions of other clients, whose connections to the node are idle between their requests.
    const agent = new Agent({ keepAlive: true })
    onTestFinished(() => agent.destroy())
    const ask = (path: string) =>
      new Promise<IncomingMessage>((resolve, reject) => {
        get(balancer.url + path, { agent }, resolve).once('error', reject)
      })
    await expect.poll(async () => (await ask('/health')).resume().statusCode).toBe(200)
    const streams: IncomingMessage[] = []
    for (let round = 0; round < 20; round++) {
      const probes = await Promise.all(Array.from({ length: 8 }, () => ask('/health')))
      await Promise.all(probes.map((probe) => once(probe.resume(), 'end')))
      streams.push(await ask('/sse?listen=a'))
    }
    expect(new Set(streams.map(({ statusCode }) => statusCode))).toEqual(new Set([200]))
    await expect.poll(() => server.stats().connectionCount).toBe(20)
    for (const stream of streams) stream.on('error', () => undefined).destroy()
  },
)

// Symptom: behind ingress-nginx, clients gave up with E_HANDSHAKE_INVALID. Cause: the first request of a connection alone could be an
// upgrade, and every later one got 426.
it.each([
  ['nginx', 'native'],
  ['nginx', 'ws'],
  ['nginx', 'uws'],
  ['haproxy', 'native'],
  ['haproxy', 'ws'],
] as const)(
  'behind %s that keeps connections, WebSockets open over those that have served requests (%s)',
  async (program, transport) => {
    const { logger } = recordingLogger()
    const server = createServer({ port: 0, logger, ...TRUSTING, transport, insecure: true })
    const { port } = await server.start()
    onTestFinished(() => server.stop({ drainMs: 0 }))
    await using balancer = await startLoadBalancer({ ports: [port], program, sharesConnections: true })
    await expect.poll(async () => (await fetch(`${balancer.url}/health`)).status).toBe(200)
    for (let round = 1; round <= 5; round++) {
      const probes = await Promise.all(Array.from({ length: 8 }, () => fetch(`${balancer.url}/health`)))
      await Promise.all(probes.map((probe) => probe.text()))
      const kept = server.stats().http.connectionCount
      const isCounted = program === 'nginx' && transport !== 'uws'
      if (isCounted) expect(kept).toBeGreaterThan(0)
      const socket = new WebSocket(`ws://127.0.0.1:${balancer.port}/ws`, ['webmq.v1'])
      onTestFinished(() => socket.terminate())
      const [welcome] = await once(socket, 'message')
      expect(String(welcome)).toMatch(/^welcome/)
      // It came over one of them.
      if (isCounted) expect(server.stats().http.connectionCount).toBe(kept - 1)
      expect(server.stats().connectionCount).toBe(round)
    }
  },
)

it('does not start with --proxy-protocol and a transport that does not read it', async () => {
  const { logger } = recordingLogger()
  const server = createServer({ port: 0, logger, ...TRUSTING, transport: 'ws', proxyProtocol: true })
  await expect(server.start()).rejects.toMatchObject({
    code: 'E_OPTION_INVALID',
    message: expect.stringContaining('--transport native'),
  })
})
