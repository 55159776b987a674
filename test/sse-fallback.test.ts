import { once } from 'node:events'
import { type AddressInfo, connect as connectTcp, createServer as createTcpServer, type Socket } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { type ClientOptions, WebMQClient, type WebSocketConstructor } from 'webmq-client'
import { history, respond, work } from 'webmq-client/parts'
import { eventStreams } from 'webmq-client/sse'
import { eventually } from 'webmq-conformance'
import { createServer } from 'webmq-server'
import { WebSocket } from 'ws'

/** What a proxy does to WebSockets that it does not forward. */
const Blocked = class {
  onclose: ((event: never) => void) | null = null
  onopen = null
  onmessage = null
  onerror = null
  binaryType = ''
  readonly bufferedAmount = 0

  constructor() {
    queueMicrotask(() => this.onclose?.({ code: 1006, reason: '' } as never))
  }

  send = () => undefined
  close = () => undefined
} as WebSocketConstructor

async function start(options = {}) {
  const server = createServer({ port: 0, logLevel: 'silent', history: ['log.#=1000,1h'], ...options })
  onTestFinished(() => server.stop({ drainMs: 0 }))
  return { server, ...(await server.start()) }
}

/** A TCP connection to the server that can be cut. */
async function startLink(port: number) {
  const sockets = new Set<Socket>()
  const link = createTcpServer((near) => {
    const far = connectTcp(port, '127.0.0.1')
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket)
      socket.on('error', () => undefined).on('close', () => other.destroy())
      socket.pipe(other)
    }
  })
  link.listen(0, '127.0.0.1')
  await once(link, 'listening')
  const cut = () => {
    for (const socket of sockets) socket.destroy()
    sockets.clear()
  }
  onTestFinished(() => {
    cut()
    link.close()
  })
  return { url: `ws://127.0.0.1:${(link.address() as AddressInfo).port}/ws`, cut }
}

function connect(url: string, options: Partial<ClientOptions> = {}): WebMQClient {
  const client = new WebMQClient({
    url,
    WebSocket: eventStreams({ WebSocket: Blocked }),
    reconnect: { minMs: 5, maxMs: 20 },
    ...options,
  })
  onTestFinished(() => client.close({ flushMs: 0 }))
  return client
}

it('falls back to event streams where WebSockets are blocked, and publishes by POST', async () => {
  const { server, url } = await start()
  const client = connect(url)
  const seen: unknown[] = []
  await client.listen('log.#', (payload, { key }) => void seen.push([key, payload])).ready
  await client.publish('log.1', { text: 'hi' })
  await client.publish('log.2', Uint8Array.of(1, 255))
  await server.publish('log.3', 'from the server')
  await eventually(() => expect(seen).toHaveLength(3))
  expect(seen).toEqual([
    ['log.1', { text: 'hi' }],
    ['log.2', Uint8Array.of(1, 255)],
    ['log.3', 'from the server'],
  ])
  // Symptom: a worker counted as `active`, and got no task.
  for (const member of [work('log.*', () => 0, { client, group: 'g' }), respond('log.*', () => 0, { client })])
    await expect(member.ready).rejects.toMatchObject({ code: 'E_UNSUPPORTED' })
  await expect(history('log.1', { client })).rejects.toMatchObject({ code: 'E_UNSUPPORTED' })
  await expect(client.publish('log.1', 1, { echo: false })).rejects.toMatchObject({ code: 'E_UNSUPPORTED' })
})

it('adds listens and replays to a stream, and loses and doubles nothing', async () => {
  const { server, url } = await start()
  const client = connect(url)
  for (let number = 0; number < 5; number++) await server.publish('log.a', number)
  const seen: Record<string, unknown[]> = { all: [], a: [], last: [], b: [] }
  const note = (name: string) => (payload: unknown) => void seen[name]?.push(payload)
  const all = client.listen('log.#', note('all'))
  await all.ready
  let published = 5
  const publish = async () => server.publish(published % 2 === 0 ? 'log.a' : 'log.b', published++)
  for (let count = 0; count < 10; count++) await publish()
  const later = [client.listen('log.a', note('a'), { last: 100 }), client.listen('log.a', note('last'), { last: 1 })]
  for (let count = 0; count < 10; count++) await publish()
  await Promise.all(later.map(({ ready }) => ready))
  await client.listen('log.b', note('b')).ready
  const from = published
  for (let count = 0; count < 10; count++) await publish()
  const numbers = (start: number, step = 1) =>
    Array.from({ length: published }, (_, number) => number).filter((number) => number >= start && number % step === 0)
  await eventually(() => expect(seen.all?.at(-1)).toBe(published - 1))
  expect(seen.all).toEqual(numbers(5))
  expect(seen.b).toEqual(numbers(from).filter((number) => number % 2 === 1))
  expect(seen.a).toEqual([0, 1, 2, 3, 4, ...numbers(6, 2)])
  expect(seen.last?.slice(1)).toEqual(numbers((seen.last?.[1] as number) ?? 0, 2))
})

it('resumes behind its last message when the stream is cut, and tells what it missed', async () => {
  const { server, port } = await start()
  const link = await startLink(port)
  const client = connect(link.url)
  const seen: unknown[] = []
  const gaps: unknown[] = []
  await client.listen('log.#', (payload) => void seen.push(payload)).ready
  await client.listen('volatile', () => undefined).ready
  await server.publish('log.1', 1)
  await eventually(() => expect(seen).toEqual([1]))
  client.on('gap', ({ pattern, reason }) => void gaps.push([pattern, reason]))
  const reconnected = new Promise<void>((resolve) =>
    client.on('status', ({ state }, previous) => {
      if (state === previous.state) return
      if (previous.state === 'connected') void server.publish('log.1', 2)
      if (state === 'connected') resolve()
    }),
  )
  link.cut()
  await reconnected
  await eventually(() => expect(seen).toEqual([1, 2]))
  expect(gaps).toEqual([['volatile', 'no-history']])
})

it('answers a ping, but never while it is being sent', async () => {
  const { url } = await start()
  const socket = new (eventStreams({ WebSocket: null }))(url, [])
  onTestFinished(() => socket.close())
  const verbs: unknown[] = []
  socket.onmessage = ({ data }: { data: string }) => void verbs.push(/^\w+/.exec(data)?.[0])
  await eventually(() => expect(verbs).toEqual(['welcome']))
  socket.send('listen 1 log.#' as never)
  await eventually(() => expect(verbs).toEqual(['welcome', 'ok']))
  socket.send('ping' as never)
  expect(verbs).toEqual(['welcome', 'ok'])
  await eventually(() => expect(verbs).toEqual(['welcome', 'ok', 'pong']))
})

it('tells a listen why it is refused, and goes on with the others', async () => {
  const { server, url } = await start({ maxListensPerConnection: 2 })
  const client = connect(url)
  const errors: unknown[] = []
  client.on('error', ({ error }) => errors.push(error))
  const seen: unknown[] = []
  await client.listen('log.#', (payload) => void seen.push(payload)).ready
  await client.listen('b', () => undefined).ready
  await expect(client.listen('c', () => undefined).ready).rejects.toMatchObject({ code: 'E_LISTEN_LIMIT' })
  await server.publish('log.1', 1)
  await eventually(() => expect(seen).toEqual([1]))
})

it('tells a listen that a hook refuses it', async () => {
  const listen = ({ pattern }: { pattern: string }) =>
    pattern === 'secret' ? { refuse: { code: 'E_NO_CREDIT', message: 'pay first' } } : undefined
  const { server, url } = await start({ hooks: { listen } })
  const client = connect(url)
  const seen: unknown[] = []
  await client.listen('log.#', (payload) => void seen.push(payload)).ready
  await expect(client.listen('secret', () => undefined).ready).rejects.toMatchObject({
    code: 'E_NO_CREDIT',
    message: 'pay first',
    retryable: false,
  })
  await server.publish('log.1', 1)
  await eventually(() => expect(seen).toEqual([1]))
})

it('stays with WebSockets where they work, and does not fall back unless it is told to', async () => {
  const { server, url } = await start()
  const client = connect(url, {
    WebSocket: eventStreams({ WebSocket: WebSocket as unknown as WebSocketConstructor }),
  })
  await client.connect()
  expect(client.status.limits?.maxWords).toBe(32)
  await history('log.1', { client })
  const blocked = connect(url, { WebSocket: Blocked, reconnect: { minMs: 1, maxMs: 1, maxAttempts: 5 } })
  await expect(blocked.connect()).rejects.toMatchObject({ code: 'E_CONNECT_FAILED' })
  expect(server.stats().connectionCount).toBe(1)
})
