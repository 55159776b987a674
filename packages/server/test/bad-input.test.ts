import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { DOCS_URL } from 'webmq-client/protocol'
import { clientFrame, closeFrame, eventually, handshakeHead, OPCODE, RawClient } from 'webmq-conformance'
import { createServer } from '../src/create-server.js'
import type { WebMQServer } from '../src/doors/in-process/webmq-server.js'
import { ProtocolClient } from './protocol-client.js'

const MAX_PAYLOAD_BYTES = 1_000
const MAX_HEADER_BYTES = 2_000
const HANDSHAKE_TIMEOUT_MS = 400
/** uWebSockets.js has a time limit of its own for request heads: 10 s, looked at in steps of 4 s. */
const HEAD_TIMEOUT_MS = { native: 3_000, ws: 3_000, uws: 14_000 }

const WS = '/ws'
const text = (payload: string) => clientFrame(OPCODE.text, payload)
const binary = (...bytes: (string | number[])[]) =>
  clientFrame(OPCODE.binary, Buffer.concat(bytes.map((part) => Buffer.from(part as string))))
const openText = (payload: string) => clientFrame(OPCODE.text, payload, { isFinal: false })

type Row<Outcome extends unknown[]> = readonly [input: string, bytes: string | Buffer, ...outcome: Outcome]

/** A page asks so why it was refused. */
const PLAIN = 'plain HTTP at the path'

/** Bytes instead of a handshake, and the status and code [P-1.4]. */
const HANDSHAKES: Row<[status: number, code: string]>[] = [
  ['a handshake without a key', handshakeHead(WS, { 'Sec-WebSocket-Key': undefined }), 400, 'E_HANDSHAKE_INVALID'],
  ['a key that is too short', handshakeHead(WS, { 'Sec-WebSocket-Key': 'AAAA' }), 400, 'E_HANDSHAKE_INVALID'],
  ['an old version', handshakeHead(WS, { 'Sec-WebSocket-Version': '7' }), 426, 'E_HANDSHAKE_INVALID'],
  ['no Connection: Upgrade', handshakeHead(WS, { Connection: 'close' }), 400, 'E_HANDSHAKE_INVALID'],
  ['an upgrade by PUT', handshakeHead(WS).replace('GET', 'PUT'), 405, 'E_HANDSHAKE_INVALID'],
  ['an upgrade with a body', `${handshakeHead(WS, { 'Content-Length': '2' })}{}`, 400, 'E_HANDSHAKE_INVALID'],
  [PLAIN, handshakeHead(WS, { Upgrade: undefined, 'Sec-WebSocket-Key': undefined }), 426, 'E_HANDSHAKE_INVALID'],
  ['another path', handshakeHead('/elsewhere'), 404, 'E_PATH_NOT_FOUND'],
  ['a path that tries to leave', handshakeHead('/ws/../../etc/passwd'), 404, 'E_PATH_NOT_FOUND'],
  ['another origin', handshakeHead(WS, { Origin: 'https://evil.example' }), 403, 'E_ORIGIN_FORBIDDEN'],
  ['an origin that is none', handshakeHead(WS, { Origin: 'null' }), 403, 'E_ORIGIN_FORBIDDEN'],
  ['another subprotocol', handshakeHead(WS, { 'Sec-WebSocket-Protocol': 'mqtt' }), 400, 'E_SUBPROTOCOL_UNSUPPORTED'],
  [
    'a subprotocol that is no token',
    handshakeHead(WS, { 'Sec-WebSocket-Protocol': '"x"' }),
    400,
    'E_HANDSHAKE_INVALID',
  ],
  ['one large header', handshakeHead(WS, { Cookie: 'c'.repeat(MAX_HEADER_BYTES) }), 431, 'E_HEADERS_TOO_LARGE'],
  ['a large path', handshakeHead(`/${'p'.repeat(MAX_HEADER_BYTES)}`), 431, 'E_HEADERS_TOO_LARGE'],
]

/** Bytes that are no HTTP: some answer or none, and then the end. */
const NOT_HTTP: Row<[]>[] = [
  ['a line of text', 'hello\r\n\r\n'],
  ['zeros', Buffer.alloc(64)],
  ['TLS', Buffer.from([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3, 13, 10, 13, 10])],
  ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['a WebSocket frame', text('ping')],
  ['another version of HTTP', 'GET /ws HTTP/9.9\r\nHost: a\r\n\r\n'],
]

/** Frames that break RFC 6455, and the close code [P-10.2]. */
const FRAMES: Row<[closeCode: number]>[] = [
  ['a reserved bit', clientFrame(OPCODE.text, 'ping', { reservedBits: 2 }), 1002],
  ['a reserved opcode', clientFrame(5, 'ping'), 1002],
  ['a continuation of nothing', clientFrame(OPCODE.continuation, 'ping'), 1002],
  ['a message inside a message', Buffer.concat([openText('pi'), text('ng')]), 1002],
  ['a ping in fragments', clientFrame(OPCODE.ping, '', { isFinal: false }), 1002],
  ['a ping that is too long', clientFrame(OPCODE.ping, 'p'.repeat(126)), 1002],
  ['a close code that nobody may send', closeFrame(1006), 1002],
  ['a text that is not UTF-8', clientFrame(OPCODE.text, Buffer.from([0x70, 0xff])), 1007],
  ['an overlong encoding', clientFrame(OPCODE.text, Buffer.from([0xc0, 0xaf])), 1007],
  ['a lone surrogate', clientFrame(OPCODE.text, Buffer.from([0xed, 0xa0, 0x80])), 1007],
  ['a message over the limit', text(`publish 1 k\n${'x'.repeat(MAX_PAYLOAD_BYTES + 4_096)}`), 1009],
  ['a message that announces 2 to the 62', clientFrame(OPCODE.binary, '', { announcedBytes: 2 ** 62 }), 1009],
]

/** Messages that break the protocol, and the id and code of the answer [P-10.4]. */
const MESSAGES: Row<[id: string, code: string]>[] = [
  ['no bytes', text(''), '-', 'E_MESSAGE_INVALID'],
  ['a line feed alone', text('\n'), '-', 'E_MESSAGE_INVALID'],
  ['a space first', text(' 1 k'), '1', 'E_MESSAGE_INVALID'],
  ['a byte order mark', text('\ufeffping'), '-', 'E_VERB_UNKNOWN'],
  ['a tab instead of a space', text('listen\t1 k'), 'k', 'E_VERB_UNKNOWN'],
  ['a carriage return at the end', text('ping\r\n'), '-', 'E_VERB_UNKNOWN'],
  ['a header of 2,049 bytes', text(`listen 1 ${'k'.repeat(2_040)}`), '1', 'E_MESSAGE_INVALID'],
  ['a header that is not UTF-8', binary('publish 1 k', [0xff, 0x0a], '{}'), '1', 'E_MESSAGE_INVALID'],
  ['a verb that is not UTF-8', binary([0xc3, 0x28]), '-', 'E_MESSAGE_INVALID'],
  ['a verb of the server', text('welcome 1'), '1', 'E_VERB_UNKNOWN'],
  ['a verb named like a method of objects', text('constructor 1'), '1', 'E_VERB_UNKNOWN'],
  ['an id of 37 characters', text(`listen ${'i'.repeat(37)} k`), '-', 'E_MESSAGE_INVALID'],
  ['an id with a dot', text('listen a.b k'), '-', 'E_MESSAGE_INVALID'],
  ['an option twice', text('listen 1 k last=1 last=1'), '1', 'E_MESSAGE_INVALID'],
  ['an option without a value', text('listen 1 k last='), '1', 'E_MESSAGE_INVALID'],
  ['a number that is none', text('listen 1 k last=-1'), '1', 'E_MESSAGE_INVALID'],
  ['a number of 16 digits', text('listen 1 k last=1000000000000000'), '1', 'E_MESSAGE_INVALID'],
  ['a message id that is too long', text(`publish 1 k id=${'m'.repeat(65)}\n1`), '1', 'E_MESSAGE_INVALID'],
  ['an auth without an id', text('auth'), '-', 'E_MESSAGE_INVALID'],
  ['a publish without a payload', text('publish 1 k'), '1', 'E_MESSAGE_INVALID'],
  ['a key of 256 bytes', text(`publish 1 ${'k'.repeat(256)}\n1`), '1', 'E_KEY_INVALID'],
  ['a key of 129 characters of 2 bytes', text(`publish 1 ${'ä'.repeat(129)}\n1`), '1', 'E_KEY_INVALID'],
  ['a wildcard in a key', text('publish 1 a.#\n1'), '1', 'E_KEY_INVALID'],
  ['a control character in a key', text('publish 1 a\u0007b\n1'), '1', 'E_KEY_INVALID'],
  ['a C1 control character in a key', text('publish 1 a\u0085b\n1'), '1', 'E_KEY_INVALID'],
  ['a wildcard inside a word', text('listen 1 a*.b'), '1', 'E_PATTERN_INVALID'],
  ['two wildcards in a word', text('listen 1 ##'), '1', 'E_PATTERN_INVALID'],
  ['a pattern of 256 bytes', text(`listen 1 ${'#.'.repeat(128)}`), '1', 'E_PATTERN_INVALID'],
  ['a zero in a pattern', text('listen 1 a\0b'), '1', 'E_PATTERN_INVALID'],
  ['a position that is none', text('listen 1 k since=x'), '1', 'E_POSITION_INVALID'],
  ['an unlisten without a listen', text('unlisten 1 k'), '1', 'E_NOT_LISTENING'],
  ['a payload over the limit', text(`publish 1 k\n${'x'.repeat(MAX_PAYLOAD_BYTES + 1)}`), '1', 'E_PAYLOAD_TOO_LARGE'],
  [
    'a payload over the limit, without an id',
    text(`publish - k\n${'x'.repeat(MAX_PAYLOAD_BYTES + 1)}`),
    '-',
    'E_PAYLOAD_TOO_LARGE',
  ],
]

describe.each(['native', 'ws', 'uws'] as const)('bad input on the %s transport', (transport) => {
  let server: WebMQServer
  let url: string
  let port: number
  const clients: RawClient[] = []

  // One server for all rows: what one of them leaves behind, the next would meet.
  beforeAll(async () => {
    server = createServer({
      transport,
      port: 0,
      logLevel: 'silent',
      maxPayloadBytes: MAX_PAYLOAD_BYTES,
      maxHeaderBytes: MAX_HEADER_BYTES,
      maxOutboxBytes: 64 * 1024,
      maxListensPerConnection: 2,
      handshakeTimeoutMs: HANDSHAKE_TIMEOUT_MS,
      closeTimeoutMs: 500,
    })
    const started = await server.start()
    url = started.url
    port = started.port
  })

  afterAll(() => server.stop({ drainMs: 0 }))

  afterEach(async () => {
    for (const client of clients.splice(0)) client.destroy()
    await expectToServe()
  })

  async function connectSocket(): Promise<RawClient> {
    const client = await RawClient.connect(port)
    clients.push(client)
    return client
  }

  /** A connection that has had its welcome. */
  async function connectRaw(): Promise<RawClient> {
    const client = await RawClient.open(port, WS, { 'Sec-WebSocket-Protocol': 'webmq.v1' })
    clients.push(client)
    await eventually(() => expect(client.texts[0]).toMatch(/^welcome\n/))
    return client
  }

  /** A client that has done nothing wrong publishes, and gets what it publishes. */
  async function expectToServe(): Promise<void> {
    const client = await ProtocolClient.open(url)
    expect(await client.request((id) => ({ verb: 'listen', id, pattern: 'good.#' }))).toMatchObject({ verb: 'ok' })
    client.send({ verb: 'publish', key: 'good.1', echo: true, payload: '"news"' })
    await client.until(() => client.payloads.length === 1)
    expect(client.payloads).toEqual(['"news"'])
    client.close()
  }

  it.each(HANDSHAKES)('refuses %s', async (input, bytes, status, code) => {
    const client = await connectSocket()
    client.write(bytes)
    const response = await client.response()
    await eventually(() =>
      expect(JSON.parse(client.body)).toEqual({
        code,
        message: expect.any(String),
        docs: `${DOCS_URL}errors.md#${code.toLowerCase()}`,
        ...(input === PLAIN ? { server: 'webmq', path: WS, originAllowed: true } : undefined),
      }),
    )
    expect(response.status).toBe(status)
    expect(client.frames).toEqual([])
  })

  it.each(NOT_HTTP)('ends a connection that begins with %s', { timeout: 30_000 }, async (_input, bytes) => {
    const client = await connectSocket()
    client.write(bytes)
    await client.ended(HEAD_TIMEOUT_MS[transport])
    expect(client.body).not.toContain('welcome')
  })

  it.each(FRAMES)('ends a connection that sends %s', async (_input, bytes, closeCode) => {
    const client = await connectRaw()
    client.write(bytes)
    await client.ended()
    // uWebSockets.js ends most of them without a close frame, or with an empty one.
    if (transport !== 'uws') expect(client.close?.code).toBe(closeCode)
    else expect(client.close?.code).toBeOneOf([closeCode, 1005, undefined])
  })

  it.each(MESSAGES)('answers %s with an error, and goes on', async (_input, bytes, id, code) => {
    const client = await connectRaw()
    client.write(bytes)
    client.write(text('ping'))
    await eventually(() => expect(client.texts.at(-1)).toMatch(/^pong( |$)/))
    const [, answer = '', ...more] = client.texts
    expect(more).toEqual([expect.stringMatching(/^pong( |$)/)])
    const [header = '', body = ''] = answer.split('\n')
    expect(header).toBe(`error ${id} ${code}`)
    expect(JSON.parse(body)).toEqual({
      message: expect.any(String),
      retryable: false,
      docs: `${DOCS_URL}errors.md#${code.toLowerCase()}`,
    })
    expect(client.isEnded).toBe(false)
  })

  it('closes with 4500 at the 16th malformed message, of whatever kinds', async () => {
    const client = await connectRaw()
    const malformed = MESSAGES.filter(([, , , code]) => code === 'E_MESSAGE_INVALID').map(([, bytes]) => bytes)
    for (let count = 0; count < 16; count++) client.write(malformed[count % malformed.length] ?? text(''))
    await client.ended()
    expect(client.texts.filter((line) => line.startsWith('error'))).toHaveLength(16)
    expect(client.texts.at(-1)).toBe('bye 4500')
    expect(client.close?.code).toBe(4500)
  })

  it('refuses one listen too many, and keeps the others', async () => {
    const client = await connectRaw()
    for (const id of [1, 2, 3]) client.write(text(`listen ${id} k.${id}`))
    client.write(text('ping'))
    await eventually(() => expect(client.texts.at(-1)).toMatch(/^pong( |$)/))
    const headers = client.texts.map((message) => message.split('\n')[0]?.split(' ').slice(0, 3).join(' '))
    expect(headers.at(-2)).toBe('error 3 E_LISTEN_LIMIT')
    expect(headers.slice(1, 3).every((header) => header?.startsWith('ok '))).toBe(true)
  })

  it('reads a message that comes as a frame per byte', async () => {
    const client = await connectRaw()
    for (const [index, byte] of [...Buffer.from('listen x slow.*')].entries()) {
      const isFinal = index === 'listen x slow.*'.length - 1
      client.write(clientFrame(index === 0 ? OPCODE.text : OPCODE.continuation, Buffer.from([byte]), { isFinal }))
    }
    await eventually(() => expect(client.texts.at(-1)).toMatch(/^ok x /))
  })

  it('drops sockets that never complete a handshake, and takes no harm from hundreds', {
    timeout: 30_000,
  }, async () => {
    const starts = ['', 'GET', 'GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: webso', handshakeHead(WS).slice(0, -2)]
    const sockets = await Promise.all(Array.from({ length: 200 }, () => connectSocket()))
    for (const [index, socket] of sockets.entries()) socket.write(starts[index % starts.length] ?? '')
    await expectToServe()
    await Promise.all(sockets.map((socket) => socket.ended(HEAD_TIMEOUT_MS[transport])))
    for (const socket of sockets) expect(socket.frames).toEqual([])
  })

  it('survives clients that vanish in the middle of everything', async () => {
    const halves = [text('listen 1 k').subarray(0, 5), openText('publish 1 k\n'), Buffer.from([0x81]), text('ping')]
    for (const half of [...halves, ...halves]) {
      const client = await connectRaw()
      client.write(half)
      client.socket.resetAndDestroy()
    }
    await eventually(() => expect(server.stats().connectionCount).toBe(0))
  })
})
