import { once } from 'node:events'
import { createServer as createHttpServer, type IncomingMessage, type Server } from 'node:http'
import { type AddressInfo, connect as connectTcp, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { createServer, type ServerOptions, type WebMQServer } from '../src/index.js'
import { recordingLogger } from './fake-server.js'
import { ProtocolClient } from './protocol-client.js'

const ends: (() => unknown)[] = []

afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end()
})

async function listen(host = '127.0.0.1'): Promise<{ http: Server; port: number }> {
  const http = createHttpServer((_request, response) => response.end('mine'))
  http.listen(0, host)
  await once(http, 'listening')
  ends.push(() => {
    http.closeAllConnections()
    http.close()
  })
  return { http, port: (http.address() as AddressInfo).port }
}

async function attach(http: Server, options: ServerOptions = {}): Promise<WebMQServer> {
  const server = createServer({ logLevel: 'silent', ...options })
  ends.push(() => server.stop({ drainMs: 0 }))
  await server.attach(http)
  return server
}

/** Another endpoint on the same server, as frameworks have them; it echoes. */
function addOther(http: Server, path: string, way: 'server' | 'noServer'): void {
  const other = way === 'server' ? new WebSocketServer({ server: http, path }) : new WebSocketServer({ noServer: true })
  other.on('connection', (socket) => socket.on('message', (data) => socket.send(`echo ${String(data)}`)))
  if (way === 'noServer') {
    http.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
      if (request.url?.split('?')[0] !== path) return
      // An endpoint that asks somebody else first.
      setTimeout(() => other.handleUpgrade(request, socket, head, (opened) => other.emit('connection', opened)), 20)
    })
  }
  ends.push(() => {
    for (const client of other.clients) client.terminate()
  })
}

/** What an endpoint answers to the upgrade and to `a`. */
async function ask(url: string): Promise<string> {
  const socket = new WebSocket(url)
  ends.push(() => socket.terminate())
  return await new Promise((resolve) => {
    socket.on('open', () => socket.send('a'))
    socket.on('message', (data) => resolve(String(data)))
    socket.on('unexpected-response', (_request, response) => resolve(`status ${response.statusCode}`))
    socket.on('error', ({ message }) => resolve(message))
  })
}

/** The answer to a raw upgrade request; `undefined` when the socket stays open so long without one. */
async function answerTo(port: number, path: string, waitMs = 20_000): Promise<string | undefined> {
  const socket = connectTcp(port, '127.0.0.1').on('error', () => undefined)
  ends.push(() => socket.destroy())
  socket.write(
    `GET ${path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
      'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  )
  const answered = once(socket, 'data').then(([data]) => String(data).split('\r\n')[0])
  const silence = new Promise<undefined>((resolve) => {
    setTimeout(resolve, waitMs)
  })
  return await Promise.race([answered, silence])
}

describe('an attached server', () => {
  // Sockets of other WebSocket endpoints of the same server, such as the hot reload of Vite or Next, got a 404. The server
  // took every WebSocket upgrade, whatever its path.
  describe.each(['before', 'after'] as const)('that is attached %s', (order) => {
    it.each(['noServer', 'server'] as const)('another endpoint (ws, %s) leaves its sockets alone', async (way) => {
      const { http, port } = await listen()
      if (order === 'after') addOther(http, '/other', way)
      const server = await attach(http)
      if (order === 'before') addOther(http, '/other', way)
      expect(await ask(`ws://127.0.0.1:${port}/other`)).toBe('echo a')
      expect(await ask(`ws://127.0.0.1:${port}/other?x=/ws`)).toBe('echo a')
      const client = await ProtocolClient.open(`ws://127.0.0.1:${port}/ws?a=1`)
      await client.request((id) => ({ verb: 'listen', id, pattern: '#' }))
      await server.publish('k', 1)
      await client.until(() => client.payloads.length === 1)
      expect(await ask(`ws://127.0.0.1:${port}/other`)).toBe('echo a')
      client.socket.close()
    })
  })

  it('leaves an upgrade that nobody takes as Node does, and answers it when it is alone', async () => {
    const { http, port } = await listen()
    const server = await attach(http)
    expect(await answerTo(port, '/other')).toBe('HTTP/1.1 404 Not Found')
    const listener = (): void => undefined
    http.on('upgrade', listener)
    expect(await answerTo(port, '/other', 300)).toBeUndefined()
    expect(await answerTo(port, '/ws')).toBe('HTTP/1.1 101 Switching Protocols')
    http.off('upgrade', listener)
    expect(await answerTo(port, '/other')).toBe('HTTP/1.1 404 Not Found')
    await server.stop({ drainMs: 0 })
  })

  // Symptom: a probe that asks whether it is full was told `ready`, always. Cause: only `start` asked for the limit.
  it('tells a probe that asks whether it is full', async () => {
    const { http, port } = await listen()
    const server = await attach(http, { maxConnections: 1 })
    http.removeAllListeners('request').on('request', (request, response) => server.handleRequest(request, response))
    const ready = async () => (await fetch(`http://127.0.0.1:${port}/ready?full=503`)).status
    expect(await ready()).toBe(200)
    const client = await ProtocolClient.open(`ws://127.0.0.1:${port}/ws`)
    expect(await ready()).toBe(503)
    client.socket.close()
  })

  it('shares the server with another one of its kind', async () => {
    const { http, port } = await listen()
    await attach(http, { path: '/a' })
    await attach(http, { path: '/b' })
    expect(await answerTo(port, '/a')).toBe('HTTP/1.1 101 Switching Protocols')
    expect(await answerTo(port, '/b')).toBe('HTTP/1.1 101 Switching Protocols')
    expect(await answerTo(port, '/c')).toBe('HTTP/1.1 404 Not Found')
  })
})

/** An address of this machine that is not loopback. */
const outside = Object.values(networkInterfaces())
  .flat()
  .find((address) => address?.family === 'IPv4' && !address.internal)?.address

describe('an attached server without tokens', () => {
  // An anonymous server that was attached to a public http server was open to everybody. Only `start` checked the address.
  it.skipIf(outside === undefined)('refuses clients of other machines (needs an address beyond loopback)', async () => {
    const { http, port } = await listen('0.0.0.0')
    const { logger, lines } = recordingLogger()
    await attach(http, { logger })
    const url = `ws://${outside}:${port}/ws`
    for (let attempt = 0; attempt < 3; attempt++) {
      expect(await ProtocolClient.refusal(url)).toMatchObject({ status: 403, json: { code: 'E_INSECURE' } })
    }
    const warnings = lines.filter(({ level }) => level === 'warn')
    expect(warnings).toMatchObject([
      { fields: { remoteAddress: outside }, message: expect.stringContaining('insecure') },
    ])
    const local = await ProtocolClient.open(`ws://127.0.0.1:${port}/ws`)
    local.socket.close()
  })

  it.each(['x-forwarded-for', 'forwarded', 'x-real-ip', 'via'])(
    'refuses clients of a proxy that sends %s',
    async (name) => {
      const { http, port } = await listen()
      const server = await attach(http)
      const url = `ws://127.0.0.1:${port}/ws`
      const headers = { [name]: '127.0.0.1' }
      expect(await ProtocolClient.refusal(url, { headers })).toMatchObject({
        status: 403,
        json: { code: 'E_INSECURE' },
      })
      await vi.waitFor(() => expect(server.stats().transport.refusedCount).toBe(1))
    },
  )

  it.each([{ insecure: true }, { jwt: { secret: 'a secret of at least thirty-two bytes!' } }])(
    'accepts them with %j',
    async (options) => {
      const { http, port } = await listen()
      await attach(http, options)
      const client = await ProtocolClient.open(`ws://127.0.0.1:${port}/ws`, { headers: { via: '1.1 proxy' } })
      expect(client.received('welcome')).toHaveLength(1)
      client.socket.close()
    },
  )
})
