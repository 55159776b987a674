import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { transformSync } from 'esbuild'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { WebMQClient } from 'webmq-client'
import { createServer, type WebMQServer } from 'webmq-server'
import { freePort } from 'webmq-services'
import { WebSocket } from 'ws'
import { findPython } from '../clients/python.js'
import { ROOT } from './blocks.js'
import { blocksFor } from './examples.js'

const { exampleOf, examplesOf } = blocksFor(import.meta.url)
const run = promisify(execFile)
const SECRET = 'a secret of 32 bytes or more, as text'
const API_KEY = 'key-of-the-examples-in-the-docs'
/** Programs start slowly on a busy machine, and Go compiles. */
const TEST_MS = 240_000
const START = { timeout: 60_000, interval: 100 }

const folder = mkdtempSync(join(tmpdir(), 'webmq-with-'))
const node = join(folder, 'node')
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

/** A project with the module of docs/with/javascript.md, and an application's own session: here a header says who it is. */
function prepareNode(): void {
  mkdirSync(join(node, 'node_modules'), { recursive: true })
  for (const name of ['express', 'fastify', 'jose', 'ws', 'webmq-client']) {
    symlinkSync(join(ROOT, 'packages/server/node_modules', name), join(node, 'node_modules', name))
  }
  symlinkSync(join(ROOT, 'packages/server'), join(node, 'node_modules/webmq-server'))
  const [imports] = [...readFileSync(join(ROOT, 'docs/with/javascript.md'), 'utf8').matchAll(/^```json\n(.*)\n```$/gm)]
  writeFileSync(join(node, 'package.json'), JSON.stringify({ type: 'module', ...JSON.parse(imports?.[1] ?? '') }))
  for (const { name, code } of examplesOf('with/javascript.md')) {
    writeFileSync(join(node, `${name}.js`), transformSync(code, { loader: 'ts' }).code)
  }
  writeFileSync(
    join(node, 'session.js'),
    `export const userOf = async ({ headers }) => new Headers(headers).get('x-user') ?? 'nobody'`,
  )
  writeFileSync(join(node, 'serve.js'), SERVE)
}

/** Next, Nuxt and SvelteKit are not installed here: this calls their routes as they do. */
const SERVE = `
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
globalThis.defineEventHandler = (handler) => handler
globalThis.readBody = ({ request }) => request.json()
globalThis.getRouterParam = ({ params }, name) => params[name]
globalThis.setResponseStatus = (event, status) => { event.status = status }
const [framework] = process.argv.slice(2)
const routes = { GET: await import(\`./\${framework}-token.js\`), POST: await import(\`./\${framework}-messages.js\`) }
async function answer(request, params) {
  const route = routes[request.method]
  if (framework === 'next') return route[request.method](request, { params: Promise.resolve(params) })
  if (framework === 'sveltekit') return route[request.method]({ request, params })
  const event = { request, headers: request.headers, params, status: 200 }
  const body = await route.default(event)
  return new Response(typeof body === 'string' ? body : JSON.stringify(body), { status: event.status })
}
createServer(async ({ method, url, headers }, response) => {
  const body = method === 'POST' ? await text(response.req) : undefined
  const [, , room] = url.split('/')
  const result = await answer(new Request('http://127.0.0.1' + url, { method, headers, body }), { room })
  response.writeHead(result.status).end(await result.text())
}).listen(process.env.PORT, '127.0.0.1')
`

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
  it.each([
    ['Express', ['express.js']],
    ['Fastify', ['fastify.js']],
    ['Next', ['serve.js', 'next']],
    ['Nuxt', ['serve.js', 'nuxt']],
    ['SvelteKit', ['serve.js', 'sveltekit']],
  ])('%s gives tokens and publishes', { timeout: TEST_MS }, async (_, args) => {
    await expectToWork(await serve(process.execPath, args, node))
  })

  it('a worker reacts', { timeout: TEST_MS }, async () => {
    start(process.execPath, ['worker.js'], node)
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
  it.each(PROGRAMS)('$name gives tokens and publishes', { timeout: TEST_MS }, async (each) => {
    if (isMissing(each.program, each.version, each.page)) return
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

  it('Go gives tokens and publishes', { timeout: TEST_MS }, async () => {
    if (isMissing('go', 'version', 'with/go.md')) return
    const place = join(folder, 'go')
    mkdirSync(place)
    writeFileSync(join(place, 'main.go'), `${exampleOf('with/go.md', 'go').code}\n`)
    await run('go', ['build', '-o', 'app', 'main.go'], { cwd: place, env })
    expect((await run('gofmt', ['-l', 'main.go'], { cwd: place, env })).stdout).toBe('')
    await expectToWork(await serve(join(place, 'app'), [], place))
  })

  it.skipIf(python.program === undefined)('a worker in Python reacts', { timeout: TEST_MS }, async () => {
    const place = join(folder, 'python')
    mkdirSync(place)
    writeFileSync(join(place, 'realtime.py'), exampleOf('with/python.md', 'python').code)
    writeFileSync(join(place, 'worker.py'), exampleOf('with/python.md', 'python-worker').code)
    start(python.program ?? '', ['worker.py'], place)
    await expectToArchive()
  })

  it.each([
    ['with/python.md', 'django', 'python3', ['-c', 'import ast, sys; ast.parse(sys.stdin.read())']],
    ['with/python.md', 'fastapi', 'python3', ['-c', 'import ast, sys; ast.parse(sys.stdin.read())']],
    ['with/rails.md', 'ruby-rails', 'ruby', ['-c']],
    ['with/laravel.md', 'php-routes', 'php', ['-l']],
  ] as const)('%s: %s is read by %s; its framework is not installed here', (page, name, program, args) => {
    if (isMissing(program, '--version', page)) return
    const { code } = exampleOf(page, name)
    const input = program === 'php' ? `<?php\n${code}` : code
    expect(spawnSync(program, args, { input, encoding: 'utf8' })).toMatchObject({ status: 0 })
  })
})

it('every block of code is run or read, but that of NestJS, which is compiled', () => {
  const names = readdirSync(join(ROOT, 'docs/with')).flatMap((file) => {
    const text = readFileSync(join(ROOT, 'docs/with', file), 'utf8')
    const examples = examplesOf(`with/${file}`)
    const blocks = text.match(/^```(ts|python|php|ruby|go)$/gm) ?? []
    expect(blocks.length - examples.length, file).toBe(file === 'javascript.md' || file === 'README.md' ? 1 : 0)
    return examples.map(({ name }) => name)
  })
  const tested = ['webmq', 'express', 'fastify', 'worker', 'go', 'python-worker', 'django', 'fastapi']
  const ofRoutes = ['next', 'nuxt', 'sveltekit'].flatMap((name) => [`${name}-token`, `${name}-messages`])
  const others = [...PROGRAMS.map(({ name }) => name), 'ruby-rails', 'php-routes']
  expect(names.toSorted()).toEqual([...tested, ...ofRoutes, ...others].toSorted())
})

/** `python3 -c code arg` takes no `--`. */
const notForPython = (name: string) => (arg: string) => name !== 'python' || arg !== '--'

function isMissing(program: string, version: string, page: string): boolean {
  const isThere = spawnSync(program, [version]).error === undefined
  if (!isThere) console.warn(`docs/${page}: not run, because ${program} is not installed`)
  return !isThere
}
