import { spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import path from 'node:path'
import { must, ROOT, run, StepError } from '../lib/steps.mjs'

const START_TIMEOUT_MS = 30_000
/** npm does not publish without a token; this registry takes any. */
const TOKEN = 'anybody'

/**
 * A registry on a free port of loopback, with data of its own. It has what is published to it; everything else comes
 * from the registry that npm is configured for.
 * @param {string} folder for its data
 * @returns {Promise<{ url: string, npmrc: string, publishAll: (staged: readonly { folder: string }[], root: string) => Promise<void>, stop: () => Promise<void> }>}
 *   `npmrc`: what a project writes to use it. `publishAll`: packages in folders below a root.
 */
export async function startRegistry(folder) {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}/`
  const config = path.join(folder, 'verdaccio.json')
  mkdirSync(folder, { recursive: true })
  writeFileSync(config, JSON.stringify(configOf(folder, await configuredRegistry())))
  const program = path.join(ROOT, 'node_modules', 'verdaccio', 'bin', 'verdaccio')
  const child = spawn(process.execPath, [program, '--config', config, '--listen', `127.0.0.1:${port}`], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
  const ended = new Promise((resolve) => child.once('close', resolve))
  process.once('exit', () => child.kill('SIGKILL'))
  const stop = async () => {
    child.kill('SIGKILL')
    await ended
  }
  try {
    await answers(`${url}-/ping`, child)
  } catch (cause) {
    await stop()
    throw new StepError(`The local registry did not start: ${cause.message}\n${output}`)
  }
  const npmrc = [
    `registry=${url}`,
    `//127.0.0.1:${port}/:_authToken=${TOKEN}`,
    'audit=false',
    'fund=false',
    'update-notifier=false',
  ].join('\n')
  return { url, npmrc, publishAll: (staged, root) => publishAll(staged, root, folder, npmrc), stop }
}

function configOf(folder, uplink) {
  const anybody = '$all'
  return {
    storage: path.join(folder, 'storage'),
    auth: { htpasswd: { file: path.join(folder, 'htpasswd'), max_users: -1 } },
    uplinks: { npm: { url: uplink, timeout: '30s', maxage: '60m' } },
    packages: {
      'webmq-*': { access: anybody, publish: anybody },
      '**': { access: anybody, proxy: 'npm' },
    },
    log: { type: 'stdout', format: 'pretty', level: 'warn' },
    web: { enable: false },
  }
}

async function configuredRegistry() {
  const url = await must('npm does not say its registry.', 'npm', ['config', 'get', 'registry'], {
    log: 'npm-registry',
  })
  return url.trim().split('\n').at(-1)
}

async function answers(url, child) {
  const deadline = performance.now() + START_TIMEOUT_MS
  while (performance.now() < deadline) {
    if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}`)
    const isUp = await fetch(url).then(
      (response) => response.ok,
      () => false,
    )
    if (isUp) return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error(`it did not answer in ${START_TIMEOUT_MS / 1_000} s`)
}

/** One run of npm for all: each takes a second to start. */
async function publishAll(staged, root, folder, npmrc) {
  const userconfig = path.join(folder, 'publish.npmrc')
  writeFileSync(userconfig, npmrc)
  const workspaces = staged.map((each) => path.relative(root, each.folder))
  writeFileSync(path.join(root, 'package.json'), JSON.stringify({ name: 'release', private: true, workspaces }))
  const cache = path.join(folder, 'npm-cache')
  const args = [
    'publish',
    '--workspaces',
    '--ignore-scripts',
    '--provenance=false',
    '--tag',
    'latest',
    '--userconfig',
    userconfig,
    '--cache',
    cache,
  ]
  const { exitCode, output } = await run('npm', args, { cwd: root, log: 'publish-locally', env: withoutNpm() })
  if (exitCode !== 0) throw new StepError(`The packages cannot be published:\n${output}`)
}

/** The environment without what `npm run` and a person's npm settings put there. */
export function withoutNpm(env = process.env) {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !/^(npm_|NPM_|pnpm_|YARN_|INIT_CWD)/.test(name)))
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })
}
