import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { freePort } from 'webmq-services'
import type { Terminal } from '../../src/doors/cli/terminal.js'
import { NODE_ORDERS, type WatchFlags } from '../../src/doors/cli/top/flags.js'
import { screenOf } from '../../src/doors/cli/top/screen.js'
import type { Snapshot } from '../../src/doors/cli/top/snapshot.js'
import { API_KEY, ApiServer } from '../api-server.js'
import { ProtocolClient } from '../protocol-client.js'
import { runInProcess, startInProcess } from './in-process.js'
import { startCli } from './process.js'

let server: ApiServer
let folder: string

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'webmq-top-'))
  server = await ApiServer.start()
  const client = await ProtocolClient.open(server.webSocketUrl)
  for (const pattern of ['chat.#', 'chat.\u202e1']) {
    await client.request((id) => ({ verb: 'listen', id, pattern }))
  }
})

afterAll(async () => {
  await server?.server.stop({ drainMs: 0 })
  rmSync(folder, { recursive: true })
})

const key = ['--api-key', API_KEY]

describe('webmq-server top', () => {
  it('prints once when it is piped: nodes, rates, slow consumers and patterns', async () => {
    const { exitCode, stdout, stderr } = await runInProcess(['top', server.url, ...key])
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(stdout).toMatch(/^1 node {3}1 connections {3}received [\d,]+\/s {3}sent [\d,]+\/s\n/)
    expect(stdout).toMatch(/^slow consumers closed: 0 {3}waiting output: \d+\.\d MiB$/m)
    expect(stdout).toMatch(/^\S+ +ok +\d+ s +1 +2 +[\d,]+ +[\d,]+ {2}memory up$/m)
    expect(stdout).toMatch(/^chat\.# +1 listeners$/m)
    // What clients name cannot rewrite the screen.
    expect(stdout).toMatch(/^chat\.\\u\{202e\}1 +1 listeners$/m)
    expect(stdout).not.toContain('\u001b')
  })

  it('prints JSON, one object per look, until it is stopped', async () => {
    const { child, output, ended } = startCli(['top', server.url, '--json', '--interval', '20ms'], {
      env: { WEBMQ_API_KEY: API_KEY },
    })
    while (output.stdout.split('\n').length < 4) await once(child.stdout ?? child, 'data')
    child.kill('SIGINT')
    const { exitCode, stdout, stderr } = await ended
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    const [first] = stdout.split('\n')
    expect(JSON.parse(first ?? '')).toMatchObject({
      nodes: [{ status: 'ok', connections: 1, patterns: 2 }],
      patterns: expect.arrayContaining([{ pattern: 'chat.#', listeners: 1 }]),
      output: { slowConsumers: 0 },
    })
  })

  it.each([[{}], [{ NO_COLOR: '1' }]])('redraws a terminal, with %j', async (env) => {
    const command = startInProcess(['top', server.url, ...key, '--interval', '20ms'], { env })
    command.stdout.isTTY = true
    await vi.waitFor(() => expect(command.stdout.text.split('\u001b[H').length).toBeGreaterThan(2))
    command.stdout.destroy(new Error('the terminal is gone'))
    const { exitCode, stdout } = await command.ended
    expect(exitCode).toBe(0)
    const screen = stdout.split('\u001b[H').at(-1) ?? ''
    expect(screen).toMatch(/sent\/s \S*[▁-█]{2,}.* most [\d,]+/)
    expect(screen).toMatch(/chat\.# +1 listeners {2}\S*▇{20}/)
    const coloured = ['\u001b[1m1 node', '\u001b[32mok'].map((text) => screen.includes(text))
    expect(coloured).toEqual('NO_COLOR' in env ? [false, false] : [true, true])
  })

  it('orders the nodes of its screen by a column', () => {
    const node = { status: 'ok', uptimeMs: 1, broker: 'redis', brokerStatus: 'up', sessions: 0 }
    const nodes = [
      { ...node, node: 'b', connections: 1, patterns: 3, receivedPerSecond: 1, sentPerSecond: 9 },
      { ...node, node: 'a', connections: 2, patterns: 2, receivedPerSecond: 2, sentPerSecond: 1 },
    ] as unknown as Snapshot['nodes']
    const snapshot = { at: '', node: 'a', nodes, missing: [], patternCount: 0, patterns: [] }
    const terminal = { stdout: {}, env: {} } as Terminal
    const first = (sort: WatchFlags['sort']) => /^(a|b) /m.exec(screenOf(snapshot, [], sort, terminal))?.[1]
    expect(NODE_ORDERS.map(first)).toEqual(['a', 'b', 'a', 'b', 'a'])
  })

  it('takes the key from a file', async () => {
    const file = join(folder, 'key')
    writeFileSync(file, `${API_KEY}\nanother-key-of-the-same-server\n`)
    const args = ['top', server.url.replace('http', 'ws'), '--once', '--json']
    expect(await runInProcess([...args, '--api-key-file', file])).toMatchObject({ exitCode: 0 })
    expect(await runInProcess(args, { env: { WEBMQ_API_KEY_FILE: file } })).toMatchObject({ exitCode: 0 })
  })

  it.each([
    [['--api-key', 'a-wrong-key'], 4, 'E_UNAUTHENTICATED'],
    [[], 2, 'no key'],
    [['--api-key', API_KEY, '--api-key-file', 'x'], 2, 'use one'],
    [['--api-key-file', '/nowhere/key'], 2, 'cannot read'],
    [['--api-key', 'not a key'], 2, 'not a key'],
    [['--api-key', API_KEY, '--interval', '0s'], 2, 'It must be a time'],
    [['--api-key', API_KEY, '--sort', 'size'], 2, 'Allowed choices are connections'],
  ])('refuses %j', async (args, exitCode, message) => {
    const result = await runInProcess(['top', server.url, ...args])
    expect(result).toMatchObject({ exitCode, stdout: '', stderr: expect.stringContaining(message) })
  })

  it('suggests its own flags, not those of the server', async () => {
    const { stderr, exitCode } = await runInProcess(['top', '--key-file', 'x'])
    expect([stderr, exitCode]).toEqual(["error: unknown option '--key-file'\n(Did you mean --api-key-file?)\n", 2])
  })

  it('says when nothing answers, and when something else does', async () => {
    const nobody = await runInProcess(['top', `127.0.0.1:${await freePort()}`, ...key])
    expect(nobody).toMatchObject({ exitCode: 3, stderr: expect.stringContaining('ECONNREFUSED') })
    const keys: unknown[] = []
    const elsewhere = createHttpServer((request, response) => {
      keys.push(request.headers.authorization)
      response.writeHead(request.url === '/api/info' ? 302 : 404, { location: 'http://127.0.0.1:1/' }).end('<html>')
    })
    await once(elsewhere.listen(0, '127.0.0.1'), 'listening')
    const url = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}`
    const other = await runInProcess(['top', url, ...key])
    elsewhere.close()
    expect(other.exitCode).not.toBe(0)
    expect(other).toMatchObject({ stdout: '', stderr: expect.stringContaining(url) })
    expect(await runInProcess(['top', 'ftp://a.example', ...key])).toMatchObject({ exitCode: 2 })
  })
})
