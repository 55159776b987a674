import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { type FaultProxy, freePort, obtainToxiproxy, sharedService, startFaultProxy } from 'webmq-services'
import { WebSocket } from 'ws'
import { inTurn } from '../../../../test/in-turn.js'
import { type CliProcess, startCli } from '../cli/process.js'

/** The promise is 2 s for a few connections. Four times that is for a busy machine; 4.7 to 10 s were taken before. */
const LIMIT_MS = 8_000
const BUILD_TIMEOUT_MS = 600_000
const SECRET = 'a secret that all nodes of the mesh share'

/** What a test has opened, closed after it in reverse. */
const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

interface Node extends CliProcess {
  readonly port: number
}

/** Starts a server with the default times. */
async function serve(...args: readonly string[]): Promise<Node> {
  const server = startCli(['--port', '0', ...args])
  cleanups.push(async () => {
    server.child.kill('SIGKILL')
    await server.ended
  })
  const port = await vi.waitFor(() => {
    const [, found] = /listens on ws:\S+:(\d+)\//.exec(server.output.stdout) ?? []
    if (found === undefined) throw new Error(`not listening: ${JSON.stringify(server.output)}`)
    return Number(found)
  })
  return { ...server, port }
}

/** Ends a server with SIGTERM and returns what it logged, if it ended in order and in time. */
async function stop(what: string, { child, ended }: Node): Promise<string> {
  const startedMs = performance.now()
  child.kill('SIGTERM')
  const { exitCode, signal, stderr } = await ended
  const tookMs = performance.now() - startedMs
  console.log(`SIGTERM to exit, ${what}: ${(tookMs / 1_000).toFixed(2)} s`)
  expect({ exitCode, signal }).toEqual({ exitCode: 0, signal: null })
  // uWebSockets.js keeps its sockets for some seconds; the command line does not wait for them.
  if (!what.includes('uws')) expect(stderr).not.toContain('something keeps the process running')
  expect(tookMs).toBeLessThan(LIMIT_MS)
  return stderr
}

interface Client {
  readonly socket: WebSocket
  readonly messages: string[]
  readonly closed: Promise<number>
}

async function open({ port }: Node): Promise<Client> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/ws`, ['webmq.v1'])
  const messages: string[] = []
  socket.on('message', (data) => messages.push(String(data)))
  cleanups.push(() => socket.terminate())
  const closed = new Promise<number>((resolve) => {
    socket.on('close', (code) => resolve(code))
  })
  await once(socket, 'open')
  return { socket, messages, closed }
}

const heard = (client: Client, start: string): Promise<void> =>
  vi.waitFor(() => expect(client.messages.find((text) => text.startsWith(start))).toBeDefined())

/** Opens a connection and sends a text; the caller may go on or never read again. */
async function openSocket(port: number, text: string): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  cleanups.push(() => socket.destroy())
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  socket.write(text)
  return socket
}

/** A client that completes the handshake, and then reads and answers nothing, not even a close frame. */
async function openSilent({ port }: Node): Promise<void> {
  const head = [
    'GET /ws HTTP/1.1',
    `Host: 127.0.0.1:${port}`,
    'Upgrade: websocket',
    'Connection: Upgrade',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    'Sec-WebSocket-Version: 13',
  ]
  const socket = await openSocket(port, `${head.join('\r\n')}\r\n\r\n`)
  await once(socket, 'data')
  socket.pause()
}

const GET = 'GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n'

async function listening(server: Server | ReturnType<typeof createTcpServer>): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  cleanups.push(() => server.close())
  return (server.address() as AddressInfo).port
}

describe('a server that gets SIGTERM', () => {
  it.each([
    ['nothing connected', 0],
    ['10 clients that answer', 10],
  ])('ends at once with %s', async (what, count) => {
    const node = await serve()
    const clients = await Promise.all(Array.from({ length: count }, () => open(node)))
    await stop(what, node)
    for (const { closed } of clients) expect(await closed).toBe(4001)
  })

  it.each(['native', 'ws', 'uws'])(
    'ends in time though clients of the %s transport do not answer',
    async (transport) => {
      const node = await serve('--transport', transport)
      const client = await open(node)
      for (let index = 0; index < 5; index++) await openSilent(node)
      const kept = await openSocket(node.port, GET)
      await once(kept, 'data')
      await openSocket(node.port, GET.slice(0, 5))
      const log = await stop(`clients that do not answer (${transport})`, node)
      expect(await client.closed).toBe(4001)
      if (transport !== 'uws') expect(log).toMatch(/"connections":5,.*"msg":"stopped without the answers/)
    },
  )

  it('ends in time though the keys of tokens do not come', async () => {
    const requests: unknown[] = []
    const keys = createServer((request) => requests.push(request))
    cleanups.push(() => keys.closeAllConnections())
    const node = await serve('--jwks', `http://127.0.0.1:${await listening(keys)}/keys`, '--audience', 'test')
    const client = await open(node)
    const token = [{ alg: 'ES256', kid: 'k' }, {}].map((part) =>
      Buffer.from(JSON.stringify(part)).toString('base64url'),
    )
    client.socket.send(`auth 1\n${token.join('.')}.AAAA`)
    await vi.waitFor(() => expect(requests).toHaveLength(1))
    await stop('a verifier that fetches keys', node)
    expect(await client.closed).toBe(4001)
  })
})

describe.each(inTurn(['redis', 'nats', 'rabbitmq'] as const))('a server on %s that gets SIGTERM', (kind) => {
  beforeAll(async () => {
    await obtainToxiproxy()
  }, BUILD_TIMEOUT_MS)

  async function serveBehindProxy(): Promise<{ node: Node; proxy: FaultProxy; client: Client }> {
    const { url } = await sharedService(kind)
    const proxy = await startFaultProxy({ url })
    cleanups.push(() => proxy.stop())
    const namespace = `stop-${process.pid}-${Date.now()}`
    const node = await serve('--broker', proxy.url, '--broker-namespace', namespace, '--history', 'logged.#=100')
    const client = await open(node)
    client.socket.send('listen 1 a.*')
    await heard(client, 'ok 1')
    return { node, proxy, client }
  }

  const publish = ({ socket }: Client) => {
    socket.send('publish 2 a.b\n1')
    socket.send('publish 3 logged.b\n1')
  }

  it('ends in time though the broker swallows publishes, and a client does not answer', async () => {
    const { node, proxy, client } = await serveBehindProxy()
    await openSilent(node)
    await proxy.swallow()
    publish(client)
    client.socket.send('ping')
    await heard(client, 'pong')
    const log = await stop(`${kind} frozen, publishes pending`, node)
    expect(await client.closed).toBe(4001)
    expect(client.messages.at(-1)).toMatch(/^bye 4001/)
    expect(log).toMatch(new RegExp(`"connections":1,"publishes":2,"broker":"${kind}",.*stopped without the answers`))
  })

  it('ends in time though the broker is down', async () => {
    const { node, proxy, client } = await serveBehindProxy()
    await proxy.cut()
    publish(client)
    await stop(`${kind} down, publishes pending`, node)
    expect(await client.closed).toBe(4001)
  })

  it('answers publishes before it closes their connection', async () => {
    const { node, proxy, client } = await serveBehindProxy()
    // Twice that for an answer: on a slow machine it may have come before the signal.
    await proxy.latency(100)
    publish(client)
    client.socket.send('ping')
    await heard(client, 'pong')
    await stop(`${kind} slow, publishes pending`, node)
    expect(await client.closed).toBe(4001)
    const verbs = client.messages.map((text) => /^(ok \d|bye 4001)/.exec(text)?.[0])
    expect(verbs.filter((verb) => verb !== undefined).sort()).toEqual(['bye 4001', 'ok 1', 'ok 2', 'ok 3'])
    expect(verbs.at(-1)).toBe('bye 4001')
  })
})

describe('a server of a mesh that gets SIGTERM', () => {
  it('ends in time though a peer is frozen, and another one does not speak', async () => {
    const mute = await listening(createTcpServer(() => undefined))
    const ports = [await freePort(), await freePort()] as const
    const serveAt = (port: number) => {
      const peers = [...ports, mute].map((peer) => `127.0.0.1:${peer}`)
      return serve('--broker', `mesh://${peers}`, '--mesh-listen', `127.0.0.1:${port}`, '--mesh-secret', SECRET)
    }
    const [node, peer] = [await serveAt(ports[0]), await serveAt(ports[1])]
    const [client, listener] = [await open(node), await open(peer)]
    listener.socket.send('listen 1 a.*')
    await heard(listener, 'ok 1')
    client.socket.send('publish 1 a.b\n1')
    await heard(listener, 'message a.b')
    peer.child.kill('SIGSTOP')
    client.socket.send('publish 2 a.b\n2')
    const log = await stop('mesh, a peer frozen, a publish pending', node)
    expect(await client.closed).toBe(4001)
    expect(log).toContain('"publishes":1,"broker":"mesh"')
  })
})
