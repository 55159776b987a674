import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { handshakeHead, RawClient } from 'webmq-conformance'
import { createServer, type ServerOptions, type WebMQServer } from '../src/index.js'
import { recordingLogger } from './fake-server.js'

// Symptom: behind nginx or a tunnel on its machine, a server without tokens gave WebSockets and event streams to everybody on
// the Internet, while its HTTP API refused them; a page whose name points at this machine read the streams. Cause: each door
// had a rule of its own for who is local.

/** Bytes of a request with these headers, and the status of one that is let in. */
interface Door {
  readonly request: (headers: Record<string, string>) => string
  readonly status: number
  readonly isOfAdminPort?: boolean
}

const plain = (path: string) => (headers: Record<string, string>) =>
  handshakeHead(path, {
    Connection: undefined,
    Upgrade: undefined,
    'Sec-WebSocket-Version': undefined,
    'Sec-WebSocket-Key': undefined,
    ...headers,
  } as Record<string, string | undefined>)

const DOORS: Readonly<Record<string, Door>> = {
  'a WebSocket': { request: (headers) => handshakeHead('/ws', headers), status: 101 },
  'an event stream': { request: plain('/sse?listen=a'), status: 200 },
  'the HTTP API': { request: plain('/api/history?key=a'), status: 200 },
  'the HTTP API of the admin port': { request: plain('/api/history?key=a'), status: 200, isOfAdminPort: true },
  'the metrics of the admin port': { request: plain('/metrics'), status: 200, isOfAdminPort: true },
}

const HERE: readonly (readonly [string, Record<string, string>])[] = [
  ['of a program', {}],
  ['of a page of the server', { 'Sec-Fetch-Site': 'same-origin' }],
  ['of a page of another port of this machine', { Origin: 'http://localhost:5173', 'Sec-Fetch-Site': 'same-site' }],
]

const ELSEWHERE: readonly (readonly [string, Record<string, string>])[] = [
  ['of a tunnel', { Host: 'abc.tunnel.example', 'X-Forwarded-For': '203.0.113.9', Via: '1.1 x' }],
  ['of a tunnel that says nothing', { Host: 'abc.tunnel.example' }],
  ['of a proxy with X-Forwarded-For', { 'X-Forwarded-For': '203.0.113.9' }],
  ['of a proxy that claims to be here', { 'X-Forwarded-For': '127.0.0.1' }],
  ['of a proxy with Forwarded', { Forwarded: 'for=203.0.113.9' }],
  ['of a proxy with X-Real-IP', { 'X-Real-IP': '203.0.113.9' }],
  ['of a proxy with Via', { Via: '1.1 proxy' }],
  ['of a page whose name points here', { Host: 'evil.example', 'Sec-Fetch-Site': 'same-origin' }],
  ['of an image of a foreign page', { 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'no-cors' }],
]

async function statusOf(port: number, bytes: string): Promise<number> {
  const client = await RawClient.connect(port)
  onTestFinished(() => client.destroy())
  client.write(Buffer.from(bytes, 'latin1'))
  return (await client.response()).status
}

describe.each(['native', 'ws'] as const)('a server without tokens (%s)', (transport) => {
  const log = recordingLogger()
  let server: WebMQServer
  let port = 0

  beforeAll(async () => {
    server = createServer({ port: 0, adminPort: 0, transport, logger: log.logger })
    port = (await server.start()).port
  })

  afterAll(() => server.stop({ drainMs: 0 }))

  describe.each(Object.entries(DOORS))('at %s', (_name, { request, status, isOfAdminPort }) => {
    const asked = (headers: Record<string, string>) =>
      statusOf(isOfAdminPort === true ? (server.adminAddress?.port ?? 0) : port, request(headers))

    it.each(HERE)('lets in a request %s', async (_what, headers) => {
      expect(await asked(headers)).toBe(status)
    })

    it.each(ELSEWHERE)('refuses a request %s', async (_what, headers) => {
      expect(await asked(headers)).toBe(403)
    })
  })

  it('says once what lets clients of a proxy in', () => {
    const warnings = log.lines.filter(({ level }) => level === 'warn')
    expect(warnings).toEqual([expect.objectContaining({ message: expect.stringContaining('insecure') as string })])
  })
})

describe('behind a proxy of this machine that speaks the PROXY protocol', () => {
  async function startBehind(options: ServerOptions = {}): Promise<number> {
    const { logger } = recordingLogger()
    const proxies = { trustedProxies: ['loopback'], proxyProtocol: true }
    const server = createServer({ port: 0, transport: 'native', logger, ...proxies, ...options })
    onTestFinished(() => server.stop({ drainMs: 0 }))
    return (await server.start()).port
  }

  const v2 = (command: number, family: number, rest: number[]) =>
    Buffer.from([...Buffer.from('\r\n\r\n\0\r\nQUIT\n'), command, family, 0, rest.length, ...rest]).toString('latin1')

  // Symptom: a connection of which the proxy knows no client had the rights of the proxy itself. Cause: it counted under the
  // address of the proxy.
  it.each([
    ['names a client of this machine', 'PROXY TCP4 127.0.0.9 127.0.0.1 5 80\r\n', 200],
    ['is of the proxy itself', v2(0x20, 0, []), 200],
    ['names another client', 'PROXY TCP4 203.0.113.9 127.0.0.1 5 80\r\n', 403],
    ['says UNKNOWN', 'PROXY UNKNOWN\r\n', 403],
    ['says UNKNOWN, and this machine', 'PROXY UNKNOWN 127.0.0.1 127.0.0.1 5 80\r\n', 403],
    ['has no family', v2(0x21, 0, []), 403],
    ['is of a UNIX socket', v2(0x21, 0x31, new Array<number>(216).fill(0)), 403],
    ['is of UDP', v2(0x21, 0x12, [127, 0, 0, 1, 127, 0, 0, 1, 0, 5, 0, 80]), 403],
  ])('a header that %s', async (_what, header, status) => {
    const port = await startBehind()
    for (const door of ['an event stream', 'the HTTP API'])
      expect([door, await statusOf(port, header + DOORS[door]?.request({}))]).toEqual([door, status])
    expect(await statusOf(port, header + handshakeHead('/ws'))).toBe(status === 200 ? 101 : status)
    expect(await statusOf(port, header + plain('/metrics')({}))).toBe(status)
  })
})
