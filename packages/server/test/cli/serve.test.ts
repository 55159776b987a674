import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SignJWT } from 'jose'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { WebSocket } from 'ws'
import { runInProcess } from './in-process.js'
import { type CliOptions, type CliProcess, runCli, startCli } from './process.js'

const SECRET = 'a secret that is long enough for HS256'

/** What a test has opened, closed after it in reverse. */
const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

interface ServingProcess extends CliProcess {
  /** `ws://127.0.0.1:<port>/ws` */
  readonly url: string
  readonly port: number
}

/** Starts a server on a free port and waits for the line that names its address. */
async function serve(args: readonly string[] = [], options?: CliOptions): Promise<ServingProcess> {
  const server = startCli(['--port', '0', ...args], options)
  cleanups.push(async () => {
    if (server.child.exitCode === null) server.child.kill('SIGKILL')
    await server.ended
  })
  const url = await vi.waitFor(() => {
    const [, found] = /^WebMQ \S+ listens on (ws:\S+)\n/.exec(server.output.stdout) ?? []
    if (found === undefined) throw new Error(`not listening: ${JSON.stringify(server.output)}`)
    return found
  })
  return { ...server, url, port: Number(new URL(url).port) }
}

/** A WebSocket that remembers what it got. */
interface Client {
  readonly socket: WebSocket
  readonly messages: string[]
  readonly closed: Promise<number>
}

function open(
  url: string,
  headers: Record<string, string> = {},
  subprotocols: readonly string[] = ['webmq.v1'],
): Client {
  const socket = new WebSocket(url, [...subprotocols], { headers })
  const messages: string[] = []
  socket.on('message', (data) => messages.push(String(data)))
  socket.on('error', () => undefined)
  cleanups.push(() => socket.terminate())
  const closed = new Promise<number>((resolve) => {
    socket.on('close', (code) => resolve(code))
  })
  return { socket, messages, closed }
}

/** Waits for a message that begins with a text. */
async function heard({ messages }: Client, start: string): Promise<string> {
  return await vi.waitFor(() => {
    const message = messages.find((text) => text.startsWith(start))
    if (message === undefined) throw new Error(`no ${start} in ${JSON.stringify(messages)}`)
    return message
  })
}

/** A port that nobody listens on: it was free a moment ago. */
async function closedPort(): Promise<number> {
  const probe = createTcpServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  await new Promise((resolve) => {
    probe.close(resolve)
  })
  return port
}

async function portTakenBySomeoneElse(): Promise<number> {
  const other = createTcpServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  cleanups.push(() => other.close())
  return (other.address() as AddressInfo).port
}

describe('webmq-server', () => {
  it('says on standard output where it listens, logs to standard error, and answers /health', async () => {
    const { url, port, output } = await serve()
    expect(url).toBe(`ws://127.0.0.1:${port}/ws`)
    expect((await fetch(`http://127.0.0.1:${port}/health`)).status).toBe(200)
    const lines = output.stderr
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(lines).toContainEqual(expect.objectContaining({ level: 'info', msg: 'listening' }))
  })

  it('brings what one client publishes to another that listens', async () => {
    const { url } = await serve()
    const [listener, publisher] = [open(url), open(url)]
    await Promise.all([heard(listener, 'welcome'), heard(publisher, 'welcome')])
    listener.socket.send('listen 1 chat.*')
    await heard(listener, 'ok 1')
    publisher.socket.send('publish 1 chat.1\n{"text":"hi"}')
    expect(await heard(listener, 'message chat.1')).toMatch(/\n\{"text":"hi"\}$/)
  })

  it('serves the demo page when asked to, and only then', async () => {
    const shown = await serve(['--demo'])
    const page = await fetch(`http://127.0.0.1:${shown.port}/`)
    expect(page.status).toBe(200)
    expect(page.headers.get('content-type')).toContain('text/html')
    const hidden = await serve()
    expect((await fetch(`http://127.0.0.1:${hidden.port}/`)).status).not.toBe(200)
  })

  it('serves another path when told so', async () => {
    const { url } = await serve([], { env: { WEBMQ_PATH: '/realtime' } })
    expect(url).toMatch(/\/realtime$/)
    await heard(open(url), 'welcome')
  })

  it('ends with 1 and says which port to take when its own is taken', async () => {
    const port = await portTakenBySomeoneElse()
    const { exitCode, stdout, stderr } = await runCli(['--port', String(port), '--log-level', 'silent'])
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' })
    expect(stderr).toMatch(/^error: address is in use: .*\(E_ADDRESS_IN_USE\)\n.+ explain E_ADDRESS_IN_USE .+\n$/)
    expect(stderr).toContain(`port ${port} of 127.0.0.1`)
    expect(stderr).toContain(`--port ${port + 1}`)
  })

  it('ends with 1 when its address is none of this machine', async () => {
    const { exitCode, stderr } = await runCli(['--host', '203.0.113.1', '--insecure', '--log-level', 'silent'])
    expect(exitCode).toBe(1)
    expect(stderr).toMatch(/^error: .*\(E_ADDRESS_UNAVAILABLE\)\n.+ explain E_ADDRESS_UNAVAILABLE .+\n$/)
  })

  it('ends with 1 and says which broker it did not reach, without its password', async () => {
    const broker = `redis://:sesame@127.0.0.1:${await closedPort()}`
    const args = ['--port', '0', '--broker', broker, '--broker-start-timeout', '300ms']
    const { exitCode, stdout, stderr } = await runCli(args)
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' })
    expect(stderr).toMatch(/^error: broker is unreachable or takes no messages: .*\(E_BROKER_UNAVAILABLE\)$/m)
    expect(stderr).toContain('127.0.0.1')
    expect(stderr).not.toContain('sesame')
    expect(stderr, 'the process ends by itself').not.toContain('something keeps the process running')
  })

  it('ends with 0 when it is stopped while it waits for its broker', async () => {
    const broker = `redis://:sesame@127.0.0.1:${await closedPort()}`
    const { child, ended, output } = startCli(['--port', '0', '--broker', broker])
    await vi.waitFor(() => expect(output.stderr).toContain('not reached yet'))
    child.kill('SIGTERM')
    expect(await ended).toMatchObject({ exitCode: 0, stdout: '' })
    expect(output.stderr).not.toContain('sesame')
  })

  it.skipIf(process.platform !== 'linux')(
    'has its name among the processes, and its number in the file that asks for it',
    async () => {
      const folder = mkdtempSync(join(tmpdir(), 'webmq-pid-'))
      cleanups.push(() => rmSync(folder, { recursive: true, force: true }))
      const pidFile = join(folder, 'webmq.pid')
      const { child, ended } = await serve(['--pid-file', pidFile])
      expect(readFileSync(pidFile, 'utf8')).toBe(`${child.pid}\n`)
      // What pidof looks for.
      expect(readFileSync(`/proc/${child.pid}/comm`, 'utf8')).toBe('webmq-server\n')
      child.kill('SIGTERM')
      expect(await ended).toMatchObject({ exitCode: 0 })
      expect(existsSync(pidFile)).toBe(false)
    },
  )

  // Symptom: a link in /tmp, in the place of the pid file, emptied the file that it led to. Cause: the server followed it.
  it.skipIf(process.platform === 'win32')('writes its number into no file that a link leads to', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'webmq-pid-'))
    cleanups.push(() => rmSync(folder, { recursive: true, force: true }))
    const [pidFile, victim] = [join(folder, 'webmq.pid'), join(folder, 'victim')]
    writeFileSync(victim, 'precious')
    symlinkSync(victim, pidFile)
    const { output } = await serve(['--pid-file', pidFile])
    await vi.waitFor(() => expect(output.stderr).toContain('the pid file cannot be written'))
    expect(readFileSync(victim, 'utf8')).toBe('precious')
  })

  it('refuses an admin port that is its own', async () => {
    const { exitCode, stderr } = await runCli(['--port', '18080', '--admin-port', '18080'])
    expect(exitCode).toBe(2)
    expect(stderr).toContain('adminPort: 18080 is the port of the server')
  })

  it('logs a warning for a variable that it does not know, and serves', async () => {
    const { output } = await serve([], { env: { WEBMQ_PAHT: '/x' } })
    expect(output.stderr).toContain('unknown environment variable WEBMQ_PAHT, did you mean WEBMQ_PATH?')
  })
})

describe('stopping webmq-server', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)('by %s sends clients away to come back, and ends with 0', async (signal) => {
    const { url, port, child, ended } = await serve()
    const client = open(url)
    await heard(client, 'welcome')
    child.kill(signal)
    expect(await client.closed).toBe(4001)
    expect(await heard(client, 'bye')).toMatch(/^bye 4001/)
    const { exitCode, stderr } = await ended
    expect(exitCode).toBe(0)
    expect(stderr, 'the process ends by itself').not.toContain('something keeps the process running')
    await expect(fetch(`http://127.0.0.1:${port}/health`)).rejects.toThrow()
  })

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('by a second %s ends at once, with %i', async (signal, exitCode) => {
    const { port, child, ended, output } = await serve(['--close-timeout', '1h'])
    await openSocketThatNeverAnswers(port)
    child.kill(signal)
    await vi.waitFor(() => expect(output.stderr).toContain('draining'))
    child.kill(signal)
    expect(await ended).toMatchObject({ exitCode, signal: null })
  })
})

describe('SIGHUP', () => {
  it('reads all options again, and says of each that differs whether it changed; bad ones change nothing', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'webmq-reload-'))
    cleanups.push(() => rmSync(folder, { recursive: true }))
    const [config, secretFile] = [join(folder, 'webmq.json'), join(folder, 'secret')]
    const write = (options: object) => writeFileSync(config, JSON.stringify({ jwt: { secretFile }, ...options }))
    const tokenOf = async (secret: string) =>
      (
        await runInProcess(['token', 'create', '-q', '--grant', '#:listen'], { env: { WEBMQ_JWT_SECRET: secret } })
      ).stdout.trim()
    const other = 'another secret of more than thirty-two bytes'
    const tokens = [await tokenOf(SECRET), await tokenOf(other)]
    write({ maxWords: 7 })
    writeFileSync(secretFile, SECRET)
    const { url, child, ended, output } = await serve(['--config', config, '--log-format', 'json'])
    const closeCodes = () =>
      Promise.all(
        tokens.map(async (token) => {
          const client = open(url, { authorization: `Bearer ${token}` })
          return await Promise.race([heard(client, 'welcome').then(() => 'welcome'), client.closed])
        }),
      )
    const lines = () =>
      output.stderr
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line))
    const reloaded = async (message: string, count = 1) => {
      child.kill('SIGHUP')
      const isIt = (line: { msg: string }) => line.msg.includes(message)
      await vi.waitFor(() => expect(lines().filter(isIt)).toHaveLength(count))
    }
    expect(await closeCodes()).toEqual(['welcome', 4501])

    write({ maxWords: 'seven' })
    writeFileSync(secretFile, other)
    await reloaded('nothing has changed')
    expect(lines().find(({ level }) => level === 'error')).toMatchObject({ code: 'E_OPTION_INVALID' })
    expect(await closeCodes()).toEqual(['welcome', 4501])

    write({ maxWords: 8, maxPayloadBytes: 1_000 })
    await reloaded('the options were read again')
    expect(await closeCodes()).toEqual([4501, 'welcome'])
    expect(lines()).toContainEqual(expect.objectContaining({ level: 'info', option: 'maxWords' }))
    expect(lines()).toContainEqual(expect.objectContaining({ level: 'info', option: 'jwt.secret' }))
    expect(lines()).toContainEqual(expect.objectContaining({ level: 'warn', option: 'maxPayloadBytes' }))
    expect(output.stderr).not.toContain(other)

    child.kill('SIGTERM')
    expect(await ended).toMatchObject({ exitCode: 0 })
  })

  it('opens a new file of the audit log once a tool has moved the old one away', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'webmq-audit-'))
    cleanups.push(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'audit.log')
    const { url, child, ended } = await serve(['--audit-log', file])
    const eventsOf = (name: string) =>
      readFileSync(name, 'utf8')
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line).event)
    await heard(open(url), 'welcome')
    await vi.waitFor(() => expect(eventsOf(file)).toEqual(['connected']))
    renameSync(file, `${file}.1`)
    child.kill('SIGHUP')
    await vi.waitFor(() => expect(eventsOf(file)).toEqual([]))
    await heard(open(url), 'welcome')
    child.kill('SIGTERM')
    expect(await ended).toMatchObject({ exitCode: 0 })
    expect(eventsOf(`${file}.1`)).toEqual(['connected'])
    expect(eventsOf(file)).toEqual(['connected', 'disconnected', 'disconnected'])
  })
})

/** A connection that completes the handshake by hand, and then answers nothing, not even a close frame. */
async function openSocketThatNeverAnswers(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  cleanups.push(() => socket.destroy())
  socket.on('error', () => undefined)
  const head = [
    'GET /ws HTTP/1.1',
    `Host: 127.0.0.1:${port}`,
    'Upgrade: websocket',
    'Connection: Upgrade',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    'Sec-WebSocket-Version: 13',
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\n`)
  await once(socket, 'data')
  socket.pause()
  return socket
}

describe('webmq-server with tokens', () => {
  const grants = ['--grant', 'chat.#:listen', '--user', 'alice']

  async function createToken(args: readonly string[]): Promise<string> {
    return (await runCli(['token', 'create', '-q', ...args], { env: { WEBMQ_JWT_SECRET: SECRET } })).stdout.trim()
  }

  it('lets in who shows one that `token create` made, in the header, as a subprotocol or by auth', async () => {
    const { url } = await serve([], { env: { WEBMQ_JWT_SECRET: SECRET } })
    const token = await createToken(grants)
    const clients = [
      open(url, { authorization: `Bearer ${token}` }),
      open(url, {}, ['webmq.v1', `webmq.bearer.${token}`]),
    ]
    for (const client of clients) expect(await heard(client, 'welcome')).toContain('"auth":"done"')
    const late = open(url)
    expect(await heard(late, 'welcome')).toContain('"auth":"required"')
    late.socket.send('listen 1 chat.1')
    expect(await heard(late, 'error 1')).toContain('E_UNAUTHENTICATED')
    late.socket.send(`auth 2\n${token}`)
    expect(await heard(late, 'ok 2')).toContain('"userId":"alice"')
    late.socket.send('listen 3 chat.1')
    await heard(late, 'ok 3')
    late.socket.send('listen 4 #')
    expect(await heard(late, 'error 4')).toContain('E_FORBIDDEN')
    late.socket.send('publish 5 chat.1\n{}')
    expect(await heard(late, 'error 5')).toContain('E_FORBIDDEN')
  })

  it('never writes a token or a secret into its log, however much it logs', async () => {
    const { url, output, child, ended } = await serve(['--log-level', 'trace'], { env: { WEBMQ_JWT_SECRET: SECRET } })
    const token = await createToken(grants)
    await heard(open(url, { authorization: `Bearer ${token}` }), 'welcome')
    await heard(open(`${url}?token=${token}`, {}, ['webmq.v1', `webmq.bearer.${token}`]), 'welcome')
    const forger = open(url)
    await heard(forger, 'welcome')
    forger.socket.send(`auth 1\n${token}x`)
    expect(await forger.closed).toBe(4501)
    child.kill('SIGTERM')
    await ended
    const [, payload = '', signature = ''] = token.split('.')
    for (const secret of [SECRET, payload, signature]) expect(output.stderr).not.toContain(secret)
  })

  it('follows the rotation of a key set while it runs', async () => {
    const keys = new Map<string, KeyObject>()
    const published: object[] = []
    const rotateTo = (kid: string): void => {
      const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      keys.set(kid, privateKey)
      published.splice(0, published.length, { ...publicKey.export({ format: 'jwk' }), kid, alg: 'ES256' })
    }
    const keyServer: Server = createServer((_request, response) => response.end(JSON.stringify({ keys: published })))
    await once(keyServer.listen(0, '127.0.0.1'), 'listening')
    cleanups.push(() => keyServer.close())
    const jwks = `http://127.0.0.1:${(keyServer.address() as AddressInfo).port}/jwks.json`
    const sign = async (kid: string, aud: string): Promise<string> =>
      await new SignJWT({ sub: kid, aud })
        .setProtectedHeader({ alg: 'ES256', kid })
        .setExpirationTime('5m')
        .sign(keys.get(kid) ?? new Uint8Array())

    const { url } = await serve(['--jwks', jwks, '--audience', 'webmq'])
    rotateTo('monday')
    const old = await sign('monday', 'webmq')
    await heard(open(url, { authorization: `Bearer ${old}` }), 'welcome')
    rotateTo('tuesday')
    await heard(open(url, { authorization: `Bearer ${await sign('tuesday', 'webmq')}` }), 'welcome')
    expect(await open(url, { authorization: `Bearer ${old}` }).closed).toBe(4501)
    expect(await open(url, { authorization: `Bearer ${await sign('tuesday', 'other')}` }).closed).toBe(4501)
  })
})

describe('webmq-server and browser pages', () => {
  const statusFor = async (url: string, origin: string, host = new URL(url).host): Promise<number> => {
    const { socket } = open(url, { origin, host })
    return await new Promise((resolve) => {
      socket.on('open', () => resolve(101))
      socket.on('unexpected-response', (_request, response) => resolve(response.statusCode ?? 0))
    })
  }

  it('lets in its own pages and those of allowed origins, and no others', async () => {
    const server = await serve(['--origin', 'https://*.example.com'])
    const { url, port } = server
    expect(await statusFor(url, `http://127.0.0.1:${port}`)).toBe(101)
    expect(await statusFor(url, 'https://app.example.com')).toBe(101)
    expect(await statusFor(url, 'https://example.org')).toBe(403)
    expect(await statusFor(url, 'null')).toBe(403)
    await vi.waitFor(() => {
      const hints = server.output.stderr.split('\n').filter((line) => line.includes('may not connect'))
      expect(hints).toEqual([expect.stringContaining('https://example.org'), expect.stringContaining('"null"')])
    })
  })

  it('lets in pages of development servers on this machine, unless there are tokens', async () => {
    const open = await serve()
    for (const page of ['http://localhost:5173', 'http://127.0.0.1:3000', 'http://[::1]:4321', 'http://localhost']) {
      expect([page, await statusFor(open.url, page)]).toEqual([page, 101])
    }
    for (const page of [
      'http://localhost.evil.com:5173',
      'http://evil.com:5173',
      'http://127.0.0.1.evil.com',
      'http://app.localhost:5173',
      'http://localhost@evil.com',
    ]) {
      expect([page, await statusFor(open.url, page)]).toEqual([page, 403])
    }
    for (const env of [{ WEBMQ_JWT_SECRET: SECRET }, { WEBMQ_HOST: '0.0.0.0', WEBMQ_INSECURE: 'on' }]) {
      const { port } = await serve([], { env })
      expect(await statusFor(`ws://127.0.0.1:${port}/ws`, 'http://localhost:5173')).toBe(403)
    }
  })

  it('lets in no page of another name for this machine, unless there are tokens', async () => {
    const open = await serve()
    const page = `http://evil.example:${open.port}`
    expect(await statusFor(open.url, page, `evil.example:${open.port}`)).toBe(403)
    const closed = await serve([], { env: { WEBMQ_JWT_SECRET: SECRET } })
    expect(await statusFor(closed.url, 'https://chat.example', 'chat.example')).toBe(101)
  })
})
