import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { FakeTransport } from 'webmq-conformance'
import { startLoadBalancer } from 'webmq-services'
import { WebSocket } from 'ws'
import { resolveOptions } from '../src/doors/options/options.js'
import { createServer, type ServerOptions } from '../src/index.js'
import { assertCapable, SocketFile } from '../src/kernel/node/endpoint.js'
import { recordingLogger } from './fake-server.js'

/** Of this machine too, so that a client can have it, but not the balancer's. */
const CLIENT = '127.0.0.7'
const API_KEY = 'k'.repeat(32)

function freePath(): string {
  const folder = mkdtempSync(join(tmpdir(), 'webmq-socket-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'webmq.sock')
}

function createAt(path: string, options: ServerOptions = {}) {
  const { logger } = recordingLogger()
  const server = createServer({ host: `unix:${path}`, logger, insecure: true, apiKeys: [API_KEY], ...options })
  onTestFinished(() => server.stop({ drainMs: 0 }))
  return server
}

async function statusOf(socketPath: string, path: string, headers: Record<string, string> = {}): Promise<number> {
  const asked = request({ socketPath, path, headers: { host: 'localhost', ...headers }, agent: false }).end()
  const [response] = await once(asked, 'response')
  response.resume()
  return response.statusCode
}

describe.each(['native', 'ws'] as const)('a server on a Unix socket (%s)', (transport) => {
  it('serves clients, probes and operators there, and removes the file at the end', async () => {
    const path = freePath()
    const server = createAt(path, { transport })
    const url = `ws+unix:${path}:/ws`
    expect(await server.start()).toEqual({ host: `unix:${path}`, port: 0, url })
    expect(statSync(path).mode & 0o777).toBe(0o660)
    const client = new WebSocket(url, ['webmq.v1'])
    onTestFinished(() => client.terminate())
    const [welcome] = await once(client, 'message')
    expect(String(welcome)).toMatch(/^welcome/)
    for (const probe of ['/health', '/ready', '/metrics'])
      expect([probe, await statusOf(path, probe)]).toEqual([probe, 200])
    await server.stop({ drainMs: 0 })
    expect(existsSync(path)).toBe(false)
  })

  it('takes what a proxy there says about the client', async () => {
    const path = freePath()
    const server = createAt(path, { transport, maxConnectionsPerAddress: 1 })
    const { url } = await server.start()
    const open = async (client: string) => {
      const socket = new WebSocket(url, ['webmq.v1'], { headers: { 'x-forwarded-for': client } })
      onTestFinished(() => socket.on('error', () => undefined).terminate())
      return await once(socket, 'open').then(() => 'open', String)
    }
    expect(await open('203.0.113.7')).toBe('open')
    expect(await open('203.0.113.8')).toBe('open')
    expect(await open('203.0.113.7')).toMatch(/429|503/)
    // Metrics are for this machine.
    expect(await statusOf(path, '/metrics', { 'x-forwarded-for': '203.0.113.7' })).toBe(403)
  })

  it('takes the place of a server that crashed, and of nobody else', async () => {
    const path = freePath()
    const dies = 'require("net").createServer().listen(process.argv[1], () => process.kill(process.pid, "SIGKILL"))'
    spawnSync(process.execPath, ['-e', dies, path])
    expect(statSync(path).isSocket()).toBe(true)
    await createAt(path, { transport, socketMode: '666' }).start()
    expect(statSync(path).mode & 0o777).toBe(0o666)

    const inUse = expect.objectContaining({ code: 'E_ADDRESS_IN_USE', message: expect.stringContaining(path) })
    await expect(createAt(path, { transport }).start()).rejects.toEqual(inUse)
    expect(await statusOf(path, '/health')).toBe(200)

    const file = freePath()
    writeFileSync(file, 'precious')
    await expect(createAt(file, { transport }).start()).rejects.toMatchObject({
      code: 'E_ADDRESS_UNAVAILABLE',
      message: expect.stringContaining('no socket'),
    })
    expect(readFileSync(file, 'utf8')).toBe('precious')
  })
})

it('leaves the file of another server that has taken the place of one that drains', async () => {
  const path = freePath()
  const first = createAt(path, { transport: 'native' })
  await first.start()
  rmSync(path)
  await createAt(path, { transport: 'native' }).start()
  await first.stop({ drainMs: 0 })
  expect(await statusOf(path, '/health')).toBe(200)
})

// Symptom: a file of root became open for all. Cause: whoever owns the folder put a link to it in the place of the socket, between
// the bind and the change of its mode, which followed the link.
it('changes the mode of its socket alone', () => {
  const path = freePath()
  const victim = `${path}.victim`
  writeFileSync(victim, 'precious', { mode: 0o600 })
  symlinkSync(victim, path)
  expect(() => SocketFile.of(`unix:${path}`)?.bound('666')).toThrow(
    expect.objectContaining({ code: 'E_ADDRESS_UNAVAILABLE', message: expect.stringContaining(path) }),
  )
  expect(statSync(victim).mode & 0o777).toBe(0o600)
})

it.each([
  ['haproxy', 'native'],
  ['nginx', 'native'],
  ['nginx', 'ws'],
] as const)('behind %s on a Unix socket, the client is known (%s)', async (program, transport) => {
  const path = freePath()
  const server = createAt(path, { transport })
  await server.start()
  await using balancer = await startLoadBalancer({ ports: [], sockets: [path], program })
  const connect = async () => {
    const socket = new WebSocket(`ws://127.0.0.1:${balancer.port}/ws`, { localAddress: CLIENT })
    onTestFinished(() => socket.on('error', () => undefined).terminate())
    return await once(socket, 'open').then(() => 'open', String)
  }
  // HAProxy asks /ready first, over the socket.
  await expect.poll(connect).toBe('open')
  const response = await fetch(`${balancer.url}/api/connections`, { headers: { authorization: `Bearer ${API_KEY}` } })
  const { connections } = (await response.json()) as { connections: { address: string }[] }
  expect(connections.map(({ address }) => address)).toEqual([CLIENT])
  expect((await fetch(`${balancer.url}/health`)).status).toBe(200)
})

describe('the options', () => {
  it('are refused when they cannot be served', () => {
    const host = 'unix:/run/webmq.sock'
    const refused = (options: ServerOptions, message: RegExp) => {
      expect(() => resolveOptions({ host, ...options })).toThrow(message)
    }
    refused({ host: 'unix:webmq.sock' }, /absolute path/)
    refused({ host: `unix:/${'x'.repeat(103)}` }, /at most 103 bytes/)
    refused({ adminPort: 0, adminHost: host, insecure: true }, /adminHost/)
    refused({ socketMode: '0660' }, /octal/)
    refused({ proxyProtocol: true, insecure: true }, /X-Forwarded-For/)
    // A proxy there passes on who comes from beyond this machine.
    refused({}, /insecure.*unix:\/run\/webmq.sock/)
    const options = resolveOptions({ host, insecure: true })
    expect(() => assertCapable(new FakeTransport(), options, false)).toThrow(
      /fake transport has no Unix sockets.*--transport/,
    )
    expect(() => assertCapable(new FakeTransport(), options, true)).not.toThrow()
  })
})
