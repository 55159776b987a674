import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
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
