import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { transformSync } from 'esbuild'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { WebMQClient } from 'webmq-client'
import { createServer, type WebMQServer } from 'webmq-server'
import { freePort } from 'webmq-services'
import { WebSocket } from 'ws'
import { findGo, GO_FOLDER } from '../clients/go.js'
import { findPython } from '../clients/python.js'
import { ROOT } from './blocks.js'
import { blocksFor } from './examples.js'

const { exampleOf } = blocksFor(import.meta.url)
const run = promisify(execFile)
const SECRET = 'a secret of 32 bytes or more, as text'
const API_KEY = 'key-of-the-examples-in-the-docs'
/** Programs start slowly on a busy machine, and Go compiles. */
const TEST_MS = 240_000
const START = { timeout: 60_000, interval: 100 }

const folder = mkdtempSync(join(tmpdir(), 'webmq-with-'))
const python = await findPython()
let server: WebMQServer
let url = ''
let env: NodeJS.ProcessEnv

beforeAll(async () => {
  server = createServer({
    port: 0,
    logLevel: 'silent',
    history: ['room.#=1000,1h'],
    jwt: { secret: SECRET },
    apiKeys: [API_KEY],
    closeTimeoutMs: 500,
  })
  const { port } = await server.start()
  url = `ws://127.0.0.1:${port}/ws`
  const variables = { WEBMQ_URL: `http://127.0.0.1:${port}`, WEBMQ_JWT_SECRET: SECRET, WEBMQ_API_KEY: API_KEY }
  env = { ...(python.program === undefined ? process.env : python.env), ...variables }
  prepareNode()
})

afterAll(async () => {
  await server.stop({ drainMs: 0 })
  rmSync(folder, { recursive: true })
})

/** Projects with the blocks of docs/with/javascript.md, and an application whose session is a header: it says who it is. */
function prepareNode(): void {
  for (const [name, main] of Object.entries(MAINS)) {
    const place = join(folder, name)
    mkdirSync(join(place, 'node_modules'), { recursive: true })
    for (const each of [name, 'jose', 'ws', 'webmq-client']) {
      symlinkSync(join(ROOT, 'packages/server/node_modules', each), join(place, 'node_modules', each))
    }
    symlinkSync(join(ROOT, 'packages/server'), join(place, 'node_modules/webmq-server'))
    writeFileSync(join(place, 'package.json'), '{ "type": "module" }')
    const write = (file: string, code: string) =>
      writeFileSync(join(place, file), transformSync(code, { loader: 'ts' }).code)
    write('realtime.js', exampleOf('with/javascript.md', name).code)
    for (const each of ['webmq', 'worker']) write(`${each}.js`, exampleOf('with/javascript.md', each).code)
    write('main.js', main)
  }
}

const MAINS = {
  express: `
import express from 'express'
import { realtime } from './realtime.js'
const app = express()
app.use((request, _, next) => {
  request.session = { userId: request.get('x-user') }
  next()
})
app.use(express.json(), realtime)
app.listen(process.env.PORT)`,
  fastify: `
import Fastify from 'fastify'
import { realtime } from './realtime.js'
const app = Fastify()
app.decorateRequest('session')
app.addHook('onRequest', async (request) => {
  request.session = { userId: request.headers['x-user'] }
})
app.register(realtime)
await app.listen({ port: Number(process.env.PORT) })`,
}

/** An application: it knows its users, signs their tokens and publishes. */
interface Application {
  token(user: string): Promise<string>
  post(room: number, text: string): Promise<unknown>
}

function start(program: string, args: readonly string[], cwd: string, more: NodeJS.ProcessEnv = {}): ChildProcess {
  const child = spawn(program, args, { cwd, env: { ...env, ...more }, stdio: ['ignore', 'inherit', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}

/** An application in a process of its own, which answers at the routes of the pages. */
async function serve(program: string, args: readonly string[], cwd: string): Promise<Application> {
  const port = await freePort()
  const child = start(program, args, cwd, { PORT: String(port) })
  const address = `http://127.0.0.1:${port}`
  const token = async (user: string) => (await fetch(`${address}/token`, { headers: { 'x-user': user } })).text()
  await expect
    .poll(() => {
      expect(child.exitCode).toBeNull()
      return token('ada').catch(() => '')
    }, START)
    .toMatch(/^e/)
  return {
    token,
    post: async (room, text) => {
      const headers = { 'content-type': 'application/json', 'x-user': 'ada' }
      const body = JSON.stringify({ id: `of-${room}`, text })
      const response = await fetch(`${address}/rooms/${room}/messages`, { method: 'POST', headers, body })
      expect(response.status).toBe(201)
    },
  }
}

let rooms = 0

/** A page with a token of the application gets what the application publishes, and what its user may have alone. */
async function expectToWork(application: Application): Promise<void> {
  const room = ++rooms
  const client = new WebMQClient({ url, WebSocket, token: () => application.token('ada') })
  onTestFinished(() => client.close({ flushMs: 0 }))
  client.on('error', () => undefined)
  const messages: unknown[] = []
  await client.listen(`room.${room}.message`, (message) => messages.push(message)).ready
  await client.listen('user.ada.#', () => undefined).ready
  await expect(client.listen('user.bob.#', () => undefined).ready).rejects.toMatchObject({ code: 'E_FORBIDDEN' })
  await expect(client.publish(`room.${room}.message`, 1)).rejects.toMatchObject({ code: 'E_FORBIDDEN' })
  await application.post(room, 'hello')
  await vi.waitFor(() => expect(messages).toEqual([expect.objectContaining({ text: 'hello' })]))
}

/** A worker reacts to a message, once it is a member of its group. */
async function expectToArchive(): Promise<void> {
  const room = ++rooms
  const archived = new Promise((resolve) => void server.listen(`room.${room}.archived`, resolve))
  let isDone = false
  void archived.then(() => {
    isDone = true
  })
  await expect
    .poll(async () => {
      await server.publish(`room.${room}.message`, { text: 'hello' })
      return isDone
    }, START)
    .toBe(true)
}

describe('docs/with/javascript.md', () => {
  it.each(Object.keys(MAINS))('%s gives tokens and publishes', { timeout: TEST_MS }, async (name) => {
    await expectToWork(await serve(process.execPath, ['main.js'], join(folder, name)))
  })

  it('a worker reacts', { timeout: TEST_MS }, async () => {
    start(process.execPath, ['worker.js'], join(folder, 'express'))
    await expectToArchive()
  })
})

/** Programs that print a token, and publish: `ada`, or a key and a text, are their arguments. */
const PROGRAMS = [
  {
    page: 'with/python.md',
    name: 'python',
    program: python.program ?? 'python3',
    version: '--version',
    flag: '-c',
    token: (code: string) => `${code}\nimport sys; print(token_for(sys.argv[1]))`,
    publish: (code: string) => `${code}\nimport sys; publish(sys.argv[1], {"text": sys.argv[2]})`,
  },
  {
    page: 'with/rails.md',
    name: 'ruby',
    program: 'ruby',
    version: '--version',
    flag: '-e',
    token: (code: string) => `${code}\nputs Realtime.token_for(ARGV[0])`,
    publish: (code: string) => `${code}\nRealtime.publish(ARGV[0], { text: ARGV[1] })`,
  },
  {
    page: 'with/laravel.md',
    name: 'php-token',
    program: 'php',
    version: '--version',
    flag: '-r',
    token: (code: string) => `${code}\necho Token::for($argv[1], getenv('WEBMQ_JWT_SECRET'));`,
    // Laravel's HTTP client is not here.
    publish: undefined,
  },
] as const

describe('other languages', () => {
  it.for(PROGRAMS)('$name gives tokens and publishes', { timeout: TEST_MS }, async (each, { skip }) => {
    skip(isMissing(each.program, each.version), each.program)
    const { code } = exampleOf(each.page, each.name)
    const call = async (source: string, ...args: string[]) =>
      (await run(each.program, [each.flag, source, '--', ...args].filter(notForPython(each.name)), { env })).stdout
    const publish = each.publish
    await expectToWork({
      token: async (user) => (await call(each.token(code), user)).trim(),
      post: (room, text) =>
        publish ? call(publish(code), `room.${room}.message`, text) : server.publish(`room.${room}.message`, { text }),
    })
  })

  it('Go gives tokens and publishes', { timeout: TEST_MS }, async ({ skip }) => {
    skip(isMissing('go', 'version'), 'go')
    const place = join(folder, 'go')
    mkdirSync(place)
    writeFileSync(join(place, 'main.go'), `${exampleOf('with/go.md', 'go').code}\n`)
    await run('go', ['build', '-o', 'app', 'main.go'], { cwd: place, env })
    expect((await run('gofmt', ['-l', 'main.go'], { cwd: place, env })).stdout).toBe('')
    await expectToWork(await serve(join(place, 'app'), [], place))
  })

  it('a worker in Go reacts', { timeout: TEST_MS }, async ({ skip }) => {
    skip(isMissing('go', 'version') || (await findGo()).missing !== undefined, 'go')
    const place = join(folder, 'go-worker')
    mkdirSync(place)
    const starts = 'func init() { panic(work(context.Background())) }'
    const files = {
      'main.go': exampleOf('with/go.md', 'go').code,
      'worker.go': exampleOf('with/go.md', 'go-worker').code,
      'start.go': `package main\n\nimport "context"\n\n${starts}`,
    }
    const paths = Object.keys(files).map((name) => join(place, name))
    for (const [name, code] of Object.entries(files)) writeFileSync(join(place, name), `${code}\n`)
    expect((await run('gofmt', ['-l', join(place, 'worker.go')])).stdout).toBe('')
    await run('go', ['build', '-o', join(place, 'app'), ...paths], { cwd: GO_FOLDER })
    start(join(place, 'app'), [], place)
    await expectToArchive()
  })

  it.skipIf(python.program === undefined)('a worker in Python reacts', { timeout: TEST_MS }, async () => {
    const place = join(folder, 'python')
    mkdirSync(place)
    writeFileSync(join(place, 'realtime.py'), exampleOf('with/python.md', 'python').code)
    writeFileSync(join(place, 'worker.py'), exampleOf('with/python.md', 'worker').code)
    start(python.program ?? '', ['worker.py'], place)
    await expectToArchive()
  })
})

/** `python3 -c code arg` takes no `--`. */
const notForPython = (name: string) => (arg: string) => name !== 'python' || arg !== '--'

const isMissing = (program: string, version: string) => spawnSync(program, [version]).error !== undefined
