import { spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import path from 'node:path'
import { must, ROOT, StepError } from '../../scripts/lib/steps.mjs'
import { publishStaged } from '../../scripts/release/publish-staged.mjs'

const START_TIMEOUT_MS = 30_000
/** npm does not publish without a token; this registry takes any. */
const TOKEN = 'anybody'

/**
 * A registry on a free port of loopback, with data of its own. It has what is published to it; everything else comes
 * from the registry that npm is configured for.
 * @param {string} folder for its data
 * @returns {Promise<{ url: string, npmrc: string, publishAll: (staged: readonly import('../../scripts/release/stage.mjs').Staged[]) => Promise<void>, stop: () => Promise<void> }>}
 *   `npmrc`: what a project writes to use it. `publishAll`: as a release does.
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
  return { url, npmrc, publishAll: (staged) => publishAll(staged, folder, npmrc), stop }
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

/** By the program of a release, with an npm that knows this registry alone. */
async function publishAll(staged, folder, npmrc) {
  const userconfig = path.join(folder, 'publish.npmrc')
  writeFileSync(userconfig, npmrc)
  const { GITHUB_ACTIONS: _, ...env } = withoutNpm()
  const npm = { npm_config_userconfig: userconfig, npm_config_cache: path.join(folder, 'npm-cache') }
  await publishStaged(staged, { tag: 'latest', env: { ...env, ...npm } })
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
