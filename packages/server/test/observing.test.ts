import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { createServer } from '../src/index.js'

/** Connects, sends messages, closes once they are answered, and returns the answers. */
async function answersTo(url: string, messages: readonly string[]): Promise<string[]> {
  const socket = new WebSocket(url, 'webmq.v1')
  const answers: string[] = []
  await new Promise<void>((resolve, reject) => {
    socket.on('error', reject)
    socket.on('message', (data: Buffer) => {
      answers.push(data.toString())
      // The first one is `welcome`.
      if (answers.length === 1) for (const message of messages) socket.send(message)
      if (answers.length === messages.length + 1) socket.close(1000, 'done')
    })
    socket.on('close', () => resolve())
  })
  return answers
}

describe('a server that is observed', () => {
  it.each(['native', 'ws'] as const)('with %s: writes its audit log and counts on /metrics', async (transport) => {
    const folder = mkdtempSync(join(tmpdir(), 'webmq-observed-'))
    const auditLog = join(folder, 'audit.log')
    try {
      const server = createServer({ port: 0, transport, auditLog, maxListensPerConnection: 1, logLevel: 'silent' })
      const { url, port } = await server.start()
      const metrics = async () => await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
      expect(await metrics()).toContain('\nwebmq_refused_total{code="E_LISTEN_LIMIT"} 0\n')
      const answers = await answersTo(url, ['listen 1 a.#', 'listen 2 b', 'publish 3 a.b\n"secret"'])
      expect(answers.join('\n')).toContain('E_LISTEN_LIMIT')
      await expect.poll(metrics).toContain('\nwebmq_closes_total{code="1000"} 1\n')
      const page = await metrics()
      expect(page).toContain('\nwebmq_refused_total{code="E_LISTEN_LIMIT"} 1\n')
      expect(page).toContain('\nwebmq_publish_duration_seconds_count 1\n')
      expect(page).toContain('\nwebmq_delivery_lag_seconds_count 1\n')
      await server.stop()
      const text = readFileSync(auditLog, 'utf8')
      const lines = text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as Record<string, unknown>)
      expect(lines.map(({ event, code, pattern, target }) => [event, code ?? pattern, target])).toEqual([
        ['connected', undefined, undefined],
        ['listened', 'a.#', undefined],
        ['refused', 'E_LISTEN_LIMIT', 'b'],
        ['disconnected', 1000, undefined],
      ])
      expect(text).not.toContain('secret')
      expect(lines[3]).toMatchObject({ address: '127.0.0.1', reason: 'done' })
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it('does not start when the audit log cannot be written', async () => {
    const server = createServer({ port: 0, logLevel: 'silent', auditLog: join(tmpdir(), 'no', 'such', 'audit.log') })
    await expect(server.start()).rejects.toMatchObject({ code: 'E_OPTION_INVALID' })
  })
})
