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

const { exampleOf, examplesOf } = blocksFor(import.meta.url)

const PAGES = ['operations.md', 'releasing.md']
const START = { timeout: 20_000, interval: 50 }
const KEY = 'k'.repeat(32)

/** Commands that are not run here, and why. All other commands of a block are. */
const NOT_HERE: readonly (readonly [begins: RegExp, why: string])[] = [
  [/^(\w+=\S+ )?docker /, 'there may be no container engine; npm run test:containers plays the stages of the image'],
  [/^(kubectl|helm) /, 'there is no cluster; npm run test:containers validates the manifests'],
  [/^systemctl /, 'it changes the machine; test/deploy/manifests.test.ts verifies the unit'],
  [
    /^npm install (--global )?webmq-server /,
    'it needs the release; npm run test:packages installs it from a registry of its own',
  ],
  [/^node \S+build-(platforms|loadgen)\./, 'it needs zig and ten minutes; the release workflow runs it'],
  [/^node scripts\/release\/publish\.mjs --dry-run/, 'test/release.test.ts runs it, in the folder that it empties'],
]

/** Which test runs the block: one below, or one of `npm run test:packages`, which has the registry that it needs. */
const PLAYED = {
  'operations.md': ['admin-port', 'unix-socket', 'admin-page', 'reload-signal', 'traces', 'systemd'],
  'releasing.md': ['undo'],
}

it.each(PAGES)('each command of docs/%s is run, or the table says why not', (page) => {
  const text = readFileSync(path.join(ROOT, 'docs', page), 'utf8')
  const run = new Set(examplesOf(page, 'sh').map(({ code }) => code))
  const others = [...text.matchAll(/^```sh\n([\s\S]*?)\n```$/gm)].map(([, code = '']) => code)
  const unexplained = others.filter((code) => !run.has(code) && commandsHere(code).length > 0)
  expect(unexplained).toEqual([])
  expect(others.length).toBeGreaterThan(1)
})

it('every block that is run has a test, and every reason a command', () => {
  for (const [page, names] of Object.entries(PLAYED)) {
    expect(examplesOf(page, 'sh').map(({ name }) => name)).toEqual(names)
  }
  const all = PAGES.map((page) => readFileSync(path.join(ROOT, 'docs', page), 'utf8')).join('\n')
  const lines = [...all.matchAll(/^```sh\n([\s\S]*?)\n```$/gm)].flatMap(([, code = '']) => code.split('\n'))
  expect(NOT_HERE.filter(([begins]) => !lines.some((line) => begins.test(line)))).toEqual([])
})

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
  const code = commandsHere(exampleOf('operations.md', 'systemd').code).join('\n')
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

/** The lines of a block that are run here, without their comments. */
function commandsHere(code: string): readonly string[] {
  const lines = code.split('\n').map((line) => line.replace(/ +# .*$/, ''))
  return lines.filter((line) => !NOT_HERE.some(([begins]) => begins.test(line)))
}

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
