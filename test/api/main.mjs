// `npm run test:api`: schemathesis asks a running server for everything that its OpenAPI document allows, and for much
// that it forbids. Everything after `--` goes to schemathesis: `npm run test:api -- --seed 7`.
// It needs Python 3.10 or later with venv; schemathesis comes from PyPI.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { build } from '../../scripts/lib/build.mjs'
import { must, print, ROOT, run, runScript, StepError, step } from '../../scripts/lib/steps.mjs'

const SCHEMATHESIS = 'schemathesis==4.32.5'
const CACHE = path.join(ROOT, '.cache', 'schemathesis')
const CONFIG = path.join(ROOT, 'test', 'api', 'schemathesis.toml')
const START_TIMEOUT_MS = 20_000
const CHECK_PYTHON = 'import sys, venv; sys.exit(0 if sys.version_info >= (3, 10) else 1)'

await runScript(async () => {
  const { exitCode } = await run('python3', ['-c', CHECK_PYTHON], { log: 'schemathesis-python' })
  if (exitCode !== 0) {
    print(
      'Skipped: schemathesis needs python3, version 3.10 or later, with venv (Debian: apt-get install python3-venv).',
    )
    return
  }
  await build()
  const schemathesis = await step('Getting schemathesis', install)
  await step('Asking the HTTP API for everything', () => test(schemathesis))
  print('\nschemathesis found nothing.')
})

async function install() {
  const isComplete = path.join(CACHE, `${SCHEMATHESIS}.installed`)
  const program = path.join(CACHE, 'venv', 'bin', 'schemathesis')
  if (existsSync(isComplete)) return program
  rmSync(CACHE, { recursive: true, force: true })
  mkdirSync(CACHE, { recursive: true })
  const sentence = 'schemathesis could not be installed: python3 with venv and the Python package index are needed.'
  const call = (command, ...args) => must(sentence, command, args, { log: 'schemathesis-install' })
  await call('python3', '-m', 'venv', path.join(CACHE, 'venv'))
  await call(path.join(CACHE, 'venv', 'bin', 'pip'), 'install', SCHEMATHESIS)
  writeFileSync(isComplete, '')
  return program
}

async function test(schemathesis) {
  const key = randomBytes(24).toString('base64url')
  const server = spawn(
    process.execPath,
    ['packages/server/dist/doors/cli/main.js', '--port', '0', '--log-level', 'warn'],
    {
      cwd: ROOT,
      env: { ...process.env, WEBMQ_API_KEY: key },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  try {
    const url = `${await urlOf(server)}/api/openapi.json`
    const args = ['--config-file', CONFIG, 'run', url, '-H', `Authorization: Bearer ${key}`, '--no-color']
    await must('schemathesis has findings.', schemathesis, [...args, ...process.argv.slice(2)], {
      cwd: CACHE,
      log: 'schemathesis',
      show: true,
    })
  } finally {
    server.kill()
    if (server.exitCode === null && server.signalCode === null) await once(server, 'exit')
  }
}

/** The server prints its address. */
async function urlOf(server) {
  const signal = AbortSignal.timeout(START_TIMEOUT_MS)
  try {
    for await (const line of createInterface({ input: server.stdout, signal })) {
      const [, host] = /ws:\/\/([^/]+)\//.exec(line) ?? []
      if (host !== undefined) return `http://${host}`
    }
  } catch (cause) {
    throw new StepError(`The server did not start within ${START_TIMEOUT_MS / 1_000} s: ${cause.message}`)
  }
  throw new StepError('The server ended before it listened.')
}
