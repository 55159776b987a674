import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { freePort } from 'webmq-services'
import { ROOT } from './blocks.js'
import { exampleOf, examplesOf } from './examples.js'

const PAGES = ['operations.md', 'releasing.md']
const START = { timeout: 20_000, interval: 50 }
const KEY = 'k'.repeat(32)

it.each(PAGES)('each command of docs/%s is run here, or says why not', (page) => {
  const lines = readFileSync(path.join(ROOT, 'docs', page), 'utf8').split('\n')
  const fences = lines.flatMap((line, at) => (line === '```sh' ? [{ at: at + 1, before: lines[at - 1] ?? '' }] : []))
  expect(fences.filter(({ before }) => !/^<!-- (run|not run): .+ -->$/.test(before))).toEqual([])
  expect(fences.length).toBeGreaterThan(1)
})

it('every command that is run has a test', () => {
  const names = PAGES.flatMap((page) => examplesOf(page, 'sh').map(({ name }) => name))
  expect(names).toEqual(['admin-port', 'admin-page'])
})

it.each(['admin-port', 'admin-page'])('%s serves what it says, started in an empty folder', async (name) => {
  const [port, adminPort] = [await freePort(), await freePort()]
  const server = start(exampleOf('operations.md', name).code, port, adminPort)
  await expect.poll(() => server.output(), START).toContain(`:${port}/ws`)
  const get = async (at: number, page: string) => (await fetch(`http://127.0.0.1:${at}${page}`)).status
  expect(await Promise.all([get(port, '/health'), get(adminPort, '/ready')])).toEqual([200, 200])
  expect(await Promise.all([get(port, '/metrics'), get(adminPort, '/metrics')])).toEqual([404, 200])
  expect(await get(adminPort, '/admin')).toBe(name === 'admin-page' ? 200 : 404)
  expect(await server.stop(), server.output()).toBe(0)
})

/** Runs a block of one command with free ports and the files of `/etc/webmq` in the folder; its PATH has `webmq-server`. */
function start(code: string, port: number, adminPort: number) {
  const folder = mkdtempSync(path.join(tmpdir(), 'webmq-docs-'))
  symlinkSync(path.join(ROOT, 'packages/server/bin/webmq-server.js'), path.join(folder, 'webmq-server'))
  for (const file of ['api-key', 'jwt-secret']) writeFileSync(path.join(folder, file), KEY, { mode: 0o600 })
  const text = code.replaceAll('/etc/webmq', folder).replaceAll('--admin-port 9090', `--admin-port ${adminPort}`)
  const env = { PATH: `${folder}:${path.dirname(process.execPath)}:/usr/bin:/bin`, WEBMQ_PORT: String(port) }
  const child: ChildProcess = spawn('sh', ['-ec', `exec ${text}`], { cwd: folder, env })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', (part) => (output += part))
  const ended = once(child, 'exit')
  onTestFinished(() => {
    child.kill('SIGKILL')
    rmSync(folder, { recursive: true })
  })
  return {
    output: () => output,
    async stop(): Promise<number | null> {
      child.kill('SIGTERM')
      const [exitCode] = (await ended) as [number | null]
      return exitCode
    },
  }
}
