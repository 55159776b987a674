import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { freePort, makeCertificate } from 'webmq-services'
import { WebSocket } from 'ws'
import { createServer } from '../src/index.js'

const BIN = fileURLToPath(new URL('../bin/webmq-server.js', import.meta.url))

describe.each(['native', 'ws', 'uws'] as const)('a full node over %s', (transport) => {
  // Symptom: clients got 503, and no metric, log line, audit line or probe said why.
  it('counts whom it refuses, and says so to probes that ask', async () => {
    const server = createServer({ transport, port: 0, logLevel: 'silent', maxConnections: 1 })
    onTestFinished(() => server.stop({ drainMs: 0 }))
    const { port } = await server.start()
    const ask = async (path: string) => {
      const response = await fetch(`http://127.0.0.1:${port}${path}`)
      return { status: response.status, text: await response.text() }
    }
    expect((await ask('/ready?full=503')).status).toBe(200)
    const url = `ws://127.0.0.1:${port}/ws`
    const first = new WebSocket(url)
    onTestFinished(() => first.terminate())
    await once(first, 'open')
    const second = new WebSocket(url)
    const [error] = await once(second, 'error')
    expect(String(error)).toContain('503')
    expect((await ask('/ready')).status).toBe(200)
    expect(await ask('/ready?full=503')).toEqual({ status: 503, text: expect.stringContaining('"full"') })
    await vi.waitFor(() => expect(server.stats().connectionLimitCounts.node).toBe(1))
    const metrics = (await ask('/metrics')).text
    expect(metrics).toMatch(/^webmq_connections_limit 1$/m)
    expect(metrics).toMatch(/^webmq_connection_limit_total\{reason="node"\} 1$/m)
    expect(metrics).toMatch(/^webmq_refused_upgrades_total\{code="E_CONNECTION_LIMIT"\} 1$/m)
    expect(JSON.parse((await ask('/health')).text)).toMatchObject({ connections: 1, connectionLimit: 1 })
  })
})

it.skipIf(process.platform === 'win32')(
  'a node whose descriptor limit leaves room for nobody does not start',
  async () => {
    const args = ['--transport', 'ws', '--port', '0']
    const child = spawn('sh', ['-c', `ulimit -n 260; exec "$0" "$@"`, process.execPath, BIN, ...args], {
      stdio: ['ignore', 'ignore', 'pipe'],
      timeout: 20_000,
    })
    let text = ''
    child.stderr.setEncoding('utf8').on('data', (part: string) => {
      text += part
    })
    const [exitCode] = await once(child, 'close')
    expect(text).toMatch(/ulimit -n\) leaves room for 4 connections/)
    expect(exitCode).toBe(1)
  },
)

// Symptom: with 1,024 descriptors, 1,024 connections that sent nothing shut everybody out of a server with TLS, without a log line.
// Cause: only those whose TLS handshake was complete gave way to newcomers.
it.skipIf(process.platform === 'win32').each([
  ['without TLS', false],
  ['over TLS', true],
] as const)('connections that send nothing give way to newcomers (ws, %s)', async (_how, isEncrypted) => {
  const folder = mkdtempSync(join(tmpdir(), 'webmq-full-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const { cert, key } = await makeCertificate({ names: ['127.0.0.1'] })
  for (const [name, pem] of Object.entries({ cert, key })) writeFileSync(join(folder, name), pem, { mode: 0o600 })
  const port = await freePort()
  const tls = isEncrypted ? ['--tls-cert', join(folder, 'cert'), '--tls-key', join(folder, 'key')] : []
  const args = ['--transport', 'ws', '--port', `${port}`, ...tls]
  // Room for 144 connections, half of them before their request.
  const child = spawn('sh', ['-c', `ulimit -n 400; exec "$0" "$@"`, process.execPath, BIN, ...args], {
    stdio: 'ignore',
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const join101 = async () => {
    const socket = new WebSocket(`${isEncrypted ? 'wss' : 'ws'}://127.0.0.1:${port}/ws`, { ca: cert })
    onTestFinished(() => socket.on('error', () => undefined).terminate())
    await once(socket, 'open', { signal: AbortSignal.timeout(2_000) })
    return socket
  }
  const first = await vi.waitFor(join101, 20_000)
  let closedCount = 0
  const idle: Socket[] = []
  onTestFinished(() => idle.forEach((socket) => void socket.destroy()))
  for (let index = 0; index < 500; index++) {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined)
    idle.push(socket.once('close', () => closedCount++))
  }
  await vi.waitFor(() => expect(closedCount).toBeGreaterThanOrEqual(500 - 72), 4_000)
  await join101()
  await join101()
  expect(first.readyState).toBe(WebSocket.OPEN)
})
