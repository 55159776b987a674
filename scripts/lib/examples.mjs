import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { build as bundle } from 'esbuild'
import { build, preview } from 'vite'
import { freePort, startNats, startRabbitmq, startRedis } from 'webmq-services'
import { print, ROOT, StepError } from './steps.mjs'

const HOST = '127.0.0.1'
const START_TIMEOUT_MS = 20_000
const POLL_MS = 25
/** A program that ignores SIGTERM for so long is killed. */
const STOP_TIMEOUT_MS = 5_000
/** Of the server, through the page's origin: the WebSocket endpoint and the HTTP API. */
const PATHS_OF_SERVER = ['/ws', '/api']

/** What an example may need; a Redis and a NATS keep on disk what they have acknowledged. */
const SERVICES = {
  redis: () => startRedis({ isPrivate: true, args: ['--appendonly', 'yes', '--appendfsync', 'always'] }),
  nats: () => startNats({ hasJetStream: true }),
  rabbitmq: () => startRabbitmq({ isPrivate: true }),
}

/**
 * Builds an example and starts its programs and its page. The packages must be built.
 *
 * Programs are the files `*.ts` beside the example's `package.json`: `server.ts`, and others such as `worker.ts`, which
 * start once the server is healthy. Each is a process. The environment tells them `PORT`, where the server listens, and
 * `WEBMQ_URL`, its endpoint. The page is `index.html`; its origin passes `/ws` and `/api` on to the server.
 *
 * An example that needs more says so in `example` of its `package.json`: `programs`, if not all of these files;
 * `services`, by the variables that tell the programs their addresses; `ports`, the variables of further free ports; and
 * `paths`, which the page's origin passes on to such a port without their first word.
 */
export async function startExample(name, { port = 0, isShown = false, broker = 'nats' } = {}) {
  const root = path.join(ROOT, 'examples', name)
  const needs = needsOf(root)
  await Promise.all([buildPrograms(root, needs.programs), buildPage(root)])
  const serverPort = await freePort()
  const env = { PORT: String(serverPort), WEBMQ_URL: `ws://${HOST}:${serverPort}/ws` }
  const programs = needs.programs.map((program) => createProgram(root, program, env, isShown))
  const server = programs.find((program) => program.name === 'server')
  const services = {}
  const closing = []
  const close = async () => {
    for (const end of closing.toReversed()) await end()
  }
  try {
    for (const [variable, kind] of Object.entries(needs.services)) {
      env[variable] = process.env[variable]
      if (env[variable] !== undefined) continue
      services[variable] = await SERVICES[kind === 'broker' ? broker : kind]()
      closing.push(() => services[variable].stop())
      env[variable] = services[variable].url
    }
    for (const variable of needs.ports) env[variable] = String(await freePort())
    for (const program of [server, ...programs.filter((other) => other !== server)]) {
      closing.push(() => program.stop())
      await program.start()
    }
    const page = await servePage(root, port, proxiesOf(needs.paths, env))
    closing.push(() => page.close())
    return { url: page.resolvedUrls.local[0], server, programs, services, env, close }
  } catch (error) {
    await close()
    throw error
  }
}

function needsOf(root) {
  const names = readdirSync(root)
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.d.ts'))
    .map((file) => path.basename(file, '.ts'))
  const { example } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'))
  const needs = { programs: names, services: {}, ports: [], paths: {}, ...example }
  if (!needs.programs.includes('server')) throw new StepError(`${root} has no server.ts`)
  return needs
}

/** Node runs TypeScript by itself only in later versions than the oldest that is supported. */
async function buildPrograms(root, names) {
  await bundle({
    entryPoints: names.map((name) => path.join(root, `${name}.ts`)),
    outdir: path.join(root, 'dist', 'programs'),
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node20',
    logLevel: 'warning',
  })
}

async function buildPage(root) {
  await build({
    root,
    configFile: false,
    logLevel: 'warn',
    build: {
      outDir: 'dist/page',
      emptyOutDir: true,
      target: 'es2022',
      reportCompressedSize: false,
      rolldownOptions: {
        // `'use client'` of the hooks is for servers that render; a page needs none.
        onLog: (level, log, handle) => log.code !== 'MODULE_LEVEL_DIRECTIVE' && handle(level, log),
      },
    },
  })
}

function proxiesOf(paths, env) {
  const target = `http://${HOST}:${env.PORT}`
  const ofServer = PATHS_OF_SERVER.map((prefix) => [prefix, { target, ws: true }])
  const others = Object.entries(paths).map(([prefix, variable]) => [
    prefix,
    { target: `http://${HOST}:${env[variable]}`, ws: true, rewrite: (url) => url.slice(prefix.length) },
  ])
  return Object.fromEntries([...ofServer, ...others])
}

function servePage(root, port, proxy) {
  return preview({
    root,
    configFile: false,
    // A server that is restarted refuses connections for a while; the client reports that.
    logLevel: 'silent',
    build: { outDir: 'dist/page' },
    preview: {
      host: HOST,
      port,
      strictPort: true,
      proxy,
    },
  })
}

function createProgram(root, name, env, isShown) {
  const file = path.join(root, 'dist', 'programs', `${name}.js`)
  let child
  let output = ''
  const take = (text) => {
    output += text
    if (isShown) print(text.trimEnd())
  }
  return {
    name,
    async start() {
      child = spawn(process.execPath, [file], {
        cwd: root,
        env: { ...process.env, ...env },
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', take)
      if (name === 'server') await healthy(child, env.PORT, () => output)
    },
    async stop(signal = 'SIGTERM') {
      if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
      const exited = once(child, 'exit')
      child.kill(signal)
      const kill = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS)
      await exited
      clearTimeout(kill)
    },
  }
}

async function healthy(child, port, output) {
  const deadlineMs = performance.now() + START_TIMEOUT_MS
  while (performance.now() < deadlineMs && child.exitCode === null) {
    try {
      if ((await fetch(`http://${HOST}:${port}/ready`)).ok) return
    } catch (error) {
      if (error.cause?.code !== 'ECONNREFUSED') throw error
    }
    await sleep(POLL_MS)
  }
  throw new StepError(`The server of the example did not start:\n${output()}`)
}
