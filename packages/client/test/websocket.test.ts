import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, it, vi } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { type ClientOptions, WebMQClient } from '../src/index.js'
import { changeOf, type StateChange } from './watched-client.js'

// The protocol by hand, byte for byte, over real sockets: it catches errors that the test server shares with the
// client.

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const WELCOME = `welcome\n${JSON.stringify({
  protocol: 'webmq.v1',
  auth: 'none',
  session: 's1',
  node: 'n1',
  version: '1.0.0',
  heartbeatMs: 25_000,
  limits: { maxPayloadBytes: 1_000, maxKeyBytes: 255, maxListensPerConnection: 10 },
})}`

interface Peer {
  readonly socket: WebSocket
  readonly request: IncomingMessage
  /** Messages in order of arrival: text as text, bytes as bytes. */
  readonly received: (string | Uint8Array)[]
}

async function startServer({ port = 0, welcome = WELCOME } = {}) {
  const server = new WebSocketServer({ port, host: '127.0.0.1', handleProtocols: () => 'webmq.v1' })
  await new Promise((resolve) => server.once('listening', resolve))
  const peers: Peer[] = []
  server.on('connection', (socket, request) => {
    const peer: Peer = { socket, request, received: [] }
    peers.push(peer)
    socket.on('message', (data: Buffer, isBinary) =>
      peer.received.push(isBinary ? new Uint8Array(data) : data.toString('utf8')),
    )
    socket.send(welcome)
  })
  const stop = async () => {
    for (const socket of server.clients) socket.terminate()
    await new Promise((resolve) => server.close(resolve))
  }
  closers.push(stop)
  return { peers, stop, port: (server.address() as AddressInfo).port }
}

function startClient(port: number, options: Partial<ClientOptions> = {}): WebMQClient {
  const client = new WebMQClient({ url: `ws://127.0.0.1:${port}/ws`, WebSocket, random: () => 0, ...options })
  closers.push(() => client.close({ flushMs: 0 }))
  return client
}

/** The n-th message that a peer receives. */
async function received(peers: readonly Peer[], connection: number, index: number): Promise<string | Uint8Array> {
  return vi.waitFor(() => {
    const message = peers[connection]?.received[index]
    if (message === undefined) throw new Error(`no message ${index} on connection ${connection}`)
    return message
  })
}

it('offers the subprotocol, and sends the token as the first message and not in the URL', async () => {
  const { peers, port } = await startServer()
  const client = startClient(port, { token: 'secret' })
  const connected = client.connect()
  expect(await received(peers, 0, 0)).toBe('auth auth\nsecret')
  expect(client.state).toBe('connecting')
  peers[0]?.socket.send('ok auth\n{"userId":"ann"}')
  await connected
  expect(peers[0]?.request.url).toBe('/ws')
  expect(peers[0]?.request.headers['sec-websocket-protocol']).toBe('webmq.v1')
})

it('listens, gets text and bytes, publishes text and bytes, unlistens', async () => {
  const { peers, port } = await startServer()
  const client = startClient(port)
  const payloads: unknown[] = []
  const subscription = client.listen('chat.*', (payload, { position }) => payloads.push([payload, position]))
  expect(await received(peers, 0, 0)).toBe('listen l1 chat.*')
  const [peer] = peers
  peer?.socket.send('ok l1 position=e:7.AAAAB')
  peer?.socket.send('message chat.ä e:8.AAAAB\n{"text":"grüß"}')
  peer?.socket.send(Buffer.from('message chat.2 -\n\x00\xff', 'latin1'))
  expect(await subscription.ready).toEqual({ recovered: false, replayed: 0, position: 'e:7.AAAAB' })
  await vi.waitFor(() => expect(payloads).toHaveLength(2))
  expect(payloads).toEqual([
    [{ text: 'grüß' }, 'e:8.AAAAB'],
    [new Uint8Array([0, 255]), undefined],
  ])

  const text = client.publish('chat.1', { text: 'hi' }, { id: 'm-1', echo: false })
  const bytes = client.publish('chat.1', new Uint8Array([1, 255]), { id: 'm-2' })
  expect(await received(peers, 0, 1)).toBe('publish p1 chat.1 id=m-1 noecho\n{"text":"hi"}')
  expect(await received(peers, 0, 2)).toEqual(
    new Uint8Array(Buffer.from('publish p2 chat.1 id=m-2\n\x01\xff', 'latin1')),
  )
  peer?.socket.send(
    'error p2 E_FORBIDDEN\n{"message":"not granted to this identity: publish chat.1","retryable":false}',
  )
  peer?.socket.send('ok p1 position=e:9.AAAAB duplicate')
  expect(await text).toEqual({ id: 'm-1', duplicate: true, position: 'e:9.AAAAB' })
  await expect(bytes).rejects.toMatchObject({
    code: 'E_FORBIDDEN',
    message: expect.stringContaining('not granted to this identity: publish chat.1'),
  })

  const gone = subscription.close()
  expect(await received(peers, 0, 3)).toBe('unlisten l2 chat.*')
  peer?.socket.send('error l2 E_NOT_LISTENING\n{"message":"connection does not listen with this pattern"}')
  await gone
})

it('connects again when the socket is cut, continues from its position and sends again what was in flight', async () => {
  const { peers, port } = await startServer()
  const client = startClient(port)
  const payloads: unknown[] = []
  const subscription = client.listen('a', (payload) => payloads.push(payload))
  await received(peers, 0, 0)
  peers[0]?.socket.send('ok l1 position=e:1.AAAAB')
  peers[0]?.socket.send('message a e:2.AAAAB\n2')
  await vi.waitFor(() => expect(payloads).toEqual([2]))
  const published = client.publish('a', 5, { id: 'm' })
  expect(await received(peers, 0, 1)).toBe('publish p1 a id=m\n5')
  peers[0]?.socket.terminate()
  expect(await received(peers, 1, 0)).toBe('listen l2 a since=e:2.AAAAB')
  expect(await received(peers, 1, 1)).toBe('publish p1 a id=m\n5')
  for (const message of [
    'ok l2 position=e:4.AAAAB recovered replayed=2',
    'message a e:3.AAAAB replay\n3',
    'message a e:4.AAAAB replay\n4',
  ]) {
    peers[1]?.socket.send(message)
  }
  peers[1]?.socket.send('message a e:5.AAAAB\n5')
  peers[1]?.socket.send('ok p1 position=e:5.AAAAB')
  expect(await published).toEqual({ id: 'm', duplicate: false, position: 'e:5.AAAAB' })
  expect(await subscription.ready).toMatchObject({ recovered: true, replayed: 2 })
  expect(payloads).toEqual([2, 3, 4, 5])
})

it("continues every listen from the last live message, and never from another listen's replay [P-8.7]", async () => {
  const { peers, port } = await startServer()
  const client = startClient(port)
  const payloads: unknown[] = []
  for (const pattern of ['quiet', 'busy']) client.listen(pattern, (payload) => payloads.push(payload))
  expect(await received(peers, 0, 1)).toBe('listen l2 busy')
  peers[0]?.socket.send('ok l1 position=e:5.AAAAB')
  peers[0]?.socket.send('ok l2 position=e:5.AAAAB')
  peers[0]?.socket.send('message busy e:7.AAAAB\n7')
  await vi.waitFor(() => expect(payloads).toEqual([7]))
  client.listen('late', (payload) => payloads.push(payload), { last: 1 })
  expect(await received(peers, 0, 2)).toBe('listen l3 late last=1')
  // The log is ahead: 8 may match `quiet`, and be on its way.
  peers[0]?.socket.send('ok l3 position=e:20.AAAAB replayed=1')
  peers[0]?.socket.send('message late e:19.AAAAB replay\n19')
  await vi.waitFor(() => expect(payloads).toEqual([7, 19]))
  peers[0]?.socket.terminate()

  const again = [0, 1, 2].map((index) => received(peers, 1, index))
  expect(await Promise.all(again)).toEqual([
    'listen l4 quiet since=e:7.AAAAB',
    'listen l5 busy since=e:7.AAAAB',
    'listen l6 late since=e:20.AAAAB',
  ])
  for (const message of [
    'ok l6 position=e:30.AAAAB recovered',
    'message late e:31.AAAAB\n31',
    'ok l4 position=e:32.AAAAB recovered replayed=2',
    'message quiet e:24.AAAAB replay\n24',
  ]) {
    peers[1]?.socket.send(message)
  }
  await vi.waitFor(() => expect(payloads).toEqual([7, 19, 31, 24]))
  peers[1]?.socket.terminate()
  // `quiet` was in the middle of its replay when 31 arrived, and `busy` had no answer.
  const third = [0, 1, 2].map((index) => received(peers, 2, index))
  expect(await Promise.all(third)).toEqual([
    'listen l7 quiet since=e:24.AAAAB',
    'listen l8 busy since=e:7.AAAAB',
    'listen l9 late since=e:31.AAAAB',
  ])
})

it('continues from a position of its own epoch only', async () => {
  const { peers, port } = await startServer()
  const client = startClient(port)
  for (const pattern of ['a', 'b']) client.listen(pattern, () => undefined)
  await received(peers, 0, 1)
  peers[0]?.socket.send('ok l1 position=old:5')
  peers[0]?.socket.send('ok l2 position=new:1')
  peers[0]?.socket.send('message b new:9\n1')
  peers[0]?.socket.send('bye 4001 0')
  peers[0]?.socket.close(4001)
  expect(await received(peers, 1, 0)).toBe('listen l3 a since=old:5')
  expect(await received(peers, 1, 1)).toBe('listen l4 b since=new:9')
})

it('retries while the server is down, says why, and connects when it is up', async () => {
  const { stop, port } = await startServer()
  await stop()
  const changes: StateChange[] = []
  const client = startClient(port, { random: () => 0.1 })
  client.on('status', (status, previous) => changes.push(changeOf(status, previous.state)))
  client.listen('a', () => undefined)
  await vi.waitFor(() => expect(changes.at(-1)).toMatchObject({ attempt: 2, code: 1006 }))
  expect(changes.at(-1)?.error).toMatchObject({
    code: 'E_CONNECT_FAILED',
    message: expect.stringContaining('ECONNREFUSED'),
  })
  const { peers } = await startServer({ port })
  expect(await received(peers, 0, 0)).toBe('listen l1 a')
})

it('treats a refused upgrade as a failed attempt', async () => {
  const http = createServer((_request, response) => response.writeHead(404).end())
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  closers.push(() => new Promise((resolve) => http.close(resolve)))
  const client = startClient((http.address() as AddressInfo).port, { reconnect: { maxAttempts: 1 } })
  await expect(client.connect()).rejects.toThrow('could not connect: Unexpected server response: 404 (1006)')
})

it('closes with 1000', async () => {
  const { peers, port } = await startServer()
  const client = startClient(port)
  await client.connect()
  const closed = new Promise((resolve) => peers[0]?.socket.once('close', resolve))
  await client.close()
  expect(await closed).toBe(1000)
})

it('gives up at a terminal close code of the server', async () => {
  const { peers, port } = await startServer()
  const client = startClient(port)
  const changes: StateChange[] = []
  client.on('status', (status, previous) => changes.push(changeOf(status, previous.state)))
  await client.connect()
  peers[0]?.socket.send('bye 4500')
  peers[0]?.socket.close(4500, 'too many malformed messages')
  await vi.waitFor(() => expect(client.state).toBe('closed'))
  expect(changes.at(-1)).toMatchObject({ code: 4500, error: { code: 'E_PROTOCOL_VIOLATION' } })
})

it('ignores verbs of later versions, reports unreadable messages, and continues', async () => {
  const { peers, port } = await startServer()
  const client = startClient(port)
  const errors: unknown[] = []
  client.on('error', ({ error }) => errors.push(error))
  await client.connect()
  peers[0]?.socket.send('later version of it')
  peers[0]?.socket.send('ok')
  peers[0]?.socket.send('pong')
  await vi.waitFor(() => expect(errors).toEqual([expect.objectContaining({ code: 'E_MESSAGE_INVALID' })]))
  expect(client.state).toBe('connected')
})
