import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { freePort } from 'webmq-services'
import { ROOT } from './blocks.js'
import { blocksFor } from './examples.js'
import { commandsOf, isExcused } from './reasons.js'

const { exampleOf } = blocksFor(import.meta.url)

const START = { timeout: 20_000, interval: 50 }
const KEY = 'k'.repeat(32)

it.each(['admin-port', 'admin-page'])('%s serves what it says, started in an empty folder', async (name) => {
  const [port, adminPort] = [await freePort(), await freePort()]
  const { code } = exampleOf('operations.md', name)
  const place = new Place({ WEBMQ_PORT: String(port) })
  place.write({ 'etc/webmq/api-key': KEY, 'etc/webmq/jwt-secret': KEY })
  const server = place.start(code.replaceAll('--admin-port 9090', `--admin-port ${adminPort}`))
  await expect.poll(() => server.output(), START).toContain(`:${port}/ws`)
  const get = async (at: number, page: string) => (await fetch(`http://127.0.0.1:${at}${page}`)).status
  expect(await Promise.all([get(port, '/health'), get(adminPort, '/ready')])).toEqual([200, 200])
  expect(await Promise.all([get(port, '/metrics'), get(adminPort, '/metrics')])).toEqual([404, 200])
  expect(await get(adminPort, '/admin')).toBe(name === 'admin-page' ? 200 : 404)
  expect(await server.stop(), server.output()).toBe(0)
})

it('unix-socket serves what it says, and its file goes with it', async () => {
  const adminPort = await freePort()
  const place = new Place()
  place.write({ 'etc/webmq/jwt-secret': KEY })
  const { code } = exampleOf('operations.md', 'unix-socket')
  mkdirSync(path.join(place.folder, 'run/webmq'), { recursive: true })
  const server = place.start(code.replaceAll('--admin-port 9090', `--admin-port ${adminPort}`))
  const file = path.join(place.folder, 'run/webmq/webmq.sock')
  await expect.poll(() => server.output(), START).toContain(`listens on ws+unix:${file}:/ws`)
  const [response] = await once(get({ socketPath: file, path: '/ready', headers: { host: 'localhost' } }), 'response')
  expect(response.resume().statusCode).toBe(200)
  expect((await fetch(`http://127.0.0.1:${adminPort}/metrics`)).status).toBe(200)
  expect(await server.stop(), server.output()).toBe(0)
  expect(existsSync(file)).toBe(false)
})

it('reload-signal makes a server read its config file again', async () => {
  const place = new Place()
  const origins = (...origins: readonly string[]) => place.write({ 'webmq.json': JSON.stringify({ port: 0, origins }) })
  origins('https://a.example.com')
  const server = place.start('webmq-server --config webmq.json --pid-file /run/webmq.pid')
  await expect.poll(() => server.output(), START).toContain('listens on ws://')
  origins('https://b.example.com')
  expect(await place.start(exampleOf('operations.md', 'reload-signal').code).ended).toBe(0)
  await expect.poll(() => server.output(), START).toContain('"option":"origins","msg":"the option has changed"')
  expect(await server.stop(), server.output()).toBe(0)
})

it('traces starts a server that sends them', async () => {
  const place = new Place({ WEBMQ_PORT: '0' })
  const server = place.start(`env ${exampleOf('operations.md', 'traces').code}`)
  await expect.poll(() => server.output(), START).toContain('listens on ws://')
  expect(server.output()).toContain('traces are sent')
  expect(await server.stop(), server.output()).toBe(0)
})

it('systemd prepares what the unit needs, and its command starts with that', async () => {
  const place = new Place()
  place.write({ 'webmq.json': JSON.stringify({ port: 0 }) })
  mkdirSync(path.join(place.folder, 'etc/systemd/system'), { recursive: true })
  rmSync(path.join(place.folder, 'etc/webmq'), { recursive: true })
  symlinkSync(path.join(ROOT, 'deploy'), path.join(place.folder, 'deploy'))
  const block = exampleOf('operations.md', 'systemd')
  const code = commandsOf(block)
    .filter((command) => !isExcused(block, command))
    .join('\n')
  const preparing = place.start(code)
  expect(await preparing.ended, preparing.output()).toBe(0)
  expect(statSync(path.join(place.folder, 'etc/webmq/jwt-secret')).mode & 0o777).toBe(0o600)

  const unit = readFileSync(path.join(place.folder, 'etc/systemd/system/webmq.service'), 'utf8')
  const [, variables = ''] = /^Environment=(.*)$/m.exec(unit) ?? []
  // systemd gives the folder of the credentials; %d is where LoadCredential has copied the secret.
  const server = place.start(`env ${variables.replaceAll('%d', '/etc/webmq')} webmq-server`)
  await expect.poll(() => server.output(), START).toContain('listens on ws://')
  expect(server.output()).not.toContain('no tokens')
  expect(await server.stop(), server.output()).toBe(0)
})

/** An empty folder in which commands run, with `etc` and `run` for those of the machine; its PATH has `webmq-server`. */
class Place {
  readonly folder = mkdtempSync(path.join(tmpdir(), 'webmq-docs-'))
  readonly #env: NodeJS.ProcessEnv

  constructor(env: NodeJS.ProcessEnv = {}) {
    for (const name of ['bin', 'run', 'etc/webmq']) mkdirSync(path.join(this.folder, name), { recursive: true })
    symlinkSync(path.join(ROOT, 'packages/server/bin/webmq-server.js'), path.join(this.folder, 'bin/webmq-server'))
    this.#env = { ...env, PATH: `${this.folder}/bin:${path.dirname(process.execPath)}:/usr/bin:/bin` }
    onTestFinished(() => rmSync(this.folder, { recursive: true }))
  }

  /** Files that only their owner may read. */
  write(files: Readonly<Record<string, string>>): void {
    for (const [file, text] of Object.entries(files)) writeFileSync(path.join(this.folder, file), text, { mode: 0o600 })
  }

  /** Runs commands of the docs; the last one is the process that is stopped. */
  start(code: string) {
    const lines = code.replace(/(?<=[\s"(=:])\/(etc|run)\//g, `${this.folder}/$1/`).split('\n')
    const last = lines.pop() ?? ''
    const script = [...lines, last.startsWith('(') || last.startsWith('kill') ? last : `exec ${last}`].join('\n')
    const child = spawn('sh', ['-ec', script], { cwd: this.folder, env: this.#env })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (part) => (output += part))
    const ended = once(child, 'close').then(([exitCode]) => exitCode as number | null)
    onTestFinished(() => void child.kill('SIGKILL'))
    return {
      ended,
      output: () => output,
      stop(): Promise<number | null> {
        child.kill('SIGTERM')
        return ended
      },
    }
  }
}
