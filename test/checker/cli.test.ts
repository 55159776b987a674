import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freePort, type Service, startRedis } from 'webmq-services'
import type { Outcome } from '../../packages/check/src/report/outcome.js'
import { type ServerProcess, startServerProcess } from '../server-process.js'
import { everyLive, LossyProxy } from './lossy-proxy.js'

const BIN = fileURLToPath(new URL('../../packages/check/bin/webmq-check.js', import.meta.url))
const LINES = fileURLToPath(new URL('../../packages/check/targets/webmq-lines.mjs', import.meta.url))
const SHORT = ['--schedules', '1', '--seconds', '3', '--json']
/** For those that must have seen something: a busy machine does nothing for seconds. */
const LONGER = ['--schedules', '1', '--seconds', '8', '--json']
const LOGGED = ['--history', '#=100000']
/** Publishes of which no listener hears one: the schedules are short. */
const LOSES_EVERY = 15
const TOKEN = 'a-token-of-this-test'

let folder: string
let redis: Service

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'webmq-check-'))
  redis = await startRedis({ isPrivate: true })
})
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true })
  await redis.stop()
})

/** The built program, as a user runs it. */
async function check(...args: readonly string[]) {
  const child = spawn(process.execPath, [BIN, ...args], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
  let [stdout, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text) => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text) => (stderr += text))
  const [code] = (await once(child, 'close')) as [number]
  return { code, stdout, stderr }
}

const outcomeIn = (stdout: string) => JSON.parse(stdout) as Outcome
const page = (name: string) => readFileSync(join(folder, name), 'utf8')
const addressOf = ({ url }: ServerProcess) => `${url.replace('http', 'ws')}/ws`

async function withServers<T>(
  flags: readonly string[],
  count: number,
  use: (urls: string[]) => Promise<T>,
): Promise<T> {
  const ports = await Promise.all(Array.from({ length: count }, () => freePort()))
  const servers = await Promise.all(ports.map((port) => startServerProcess(port, ['--log-level', 'warn', ...flags])))
  try {
    return await use(servers.map(addressOf))
  } finally {
    await Promise.all(servers.map((server) => server.kill('SIGKILL')))
  }
}

describe.concurrent('webmq-check', () => {
  it('finds that a node keeps its promises', async () => {
    const { code, stdout, stderr } = await withServers(LOGGED, 1, ([url = '']) =>
      check('--url', url, ...LONGER, '--seed', '1', '--report', 'memory.html'),
    )
    expect(stderr).toContain('log: one per node')
    expect(outcomeIn(stdout)).toMatchObject({ verdict: 'held', failures: [] })
    expect(code).toBe(0)
    const held = outcomeIn(stdout).promises.find(({ rule }) => rule === 'lost')
    expect(held?.checks).toBeGreaterThan(0)
    expect(page('memory.html')).toContain('Every promise was kept')
    expect(page('memory.html')).not.toMatch(/<script|https?:\/\//)
  })

  it('finds out that two nodes share a log, and runs the command of the operator', async () => {
    const flags = [...LOGGED, '--broker', redis.url, '--broker-namespace', 'cli']
    const { code, stdout, stderr } = await withServers(flags, 2, (urls) =>
      check('--url', urls.join(), ...SHORT, '--seed', '0', '--fault-command', 'touch was-run', '--no-report'),
    )
    expect(stderr).toContain('log: one for all nodes')
    expect(outcomeIn(stdout)).toMatchObject({ verdict: 'held', counts: { schedules: 1 } })
    expect(outcomeIn(stdout).schedules[0]?.theme).toContain('command of the operator')
    expect(page('was-run')).toBe('')
    expect(code).toBe(0)
  })

  it('finds what a proxy loses, and draws it', async () => {
    const { code, stdout } = await withServers(LOGGED, 1, async ([url = '']) => {
      const proxy = await LossyProxy.start(url, everyLive(LOSES_EVERY))
      try {
        const args = ['--seed', '2', '--shrink-seconds', '5', '--report', 'lossy.html', '--token', TOKEN]
        return await check('--url', proxy.url, ...SHORT, ...args)
      } finally {
        proxy.stop()
      }
    })
    expect(code).toBe(1)
    const { verdict, failures, command } = outcomeIn(stdout)
    expect(verdict).toBe('violated')
    expect(failures[0]?.violations.map(({ rule }) => rule)).toContain('lost')
    const text = page('lossy.html')
    expect(text).toContain('promise not kept')
    expect(text.match(/<line class="missed"/g)?.length).toBeGreaterThan(0)
    expect(text).toContain('>never came</text>')
    for (const shown of [text, command, stdout]) expect(shown).not.toContain(TOKEN)
  })

  it('judges a system by a command that speaks for its client', async () => {
    const { code, stdout, stderr } = await withServers(LOGGED, 1, ([url = '']) =>
      check(
        '--target',
        `'${process.execPath}' '${LINES}'`,
        '--url',
        url,
        ...LONGER,
        '--seed',
        '1',
        '--theme',
        'move',
        '--no-report',
      ),
    )
    expect({ code, stderr }).toMatchObject({ code: 0 })
    const { verdict, counts } = outcomeIn(stdout)
    expect(verdict).toBe('held')
    expect(counts.acknowledged).toBeGreaterThan(0)
    expect(counts.recovered).toBeGreaterThan(0)
  })

  it('says in a sentence why nothing could be checked', async () => {
    const port = await freePort()
    const unreachable = await check('--url', `ws://127.0.0.1:${port}/ws`, ...SHORT)
    expect(unreachable).toMatchObject({ code: 2, stdout: '' })
    expect(unreachable.stderr).toMatch(/^error: ws:\S+: it cannot be reached: .+\n$/)
    await withServers(['--insecure', '--jwt-secret', 'x'.repeat(32)], 1, async ([url = '']) => {
      expect(await check('--url', url, ...SHORT)).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('it asks for a token: --token-file'),
      })
      expect(await check('--url', url, '--token', TOKEN, ...SHORT)).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('the token is not valid'),
      })
    })
    await withServers(LOGGED, 1, async ([url = '']) => {
      expect(await check('--url', url, ...SHORT, '--logged', 'none')).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('--logged none is not what the server does'),
      })
      expect(await check('--url', url, ...SHORT, '--seed', '0', '--fault-command', 'echo why; exit 3')).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(/it ended with exit code 3\nwhy/),
      })
    })
  })

  it.each([
    [[], 'name an installation by --url'],
    [['--url', 'http://x'], '--url is ws://'],
    [['--url', 'ws://user:word@x'], '--url has no password'],
    [['--url', 'ws://x', '--seconds', '0'], '--seconds is a whole number from 3 to 600'],
    [['--url', 'ws://x', '--prefix', 'a.#'], '--prefix is words'],
    [['--url', 'ws://x', '--token-file', 'none'], 'cannot be read'],
    [['--nothing'], '--help lists the options'],
  ])('refuses %j', async (args, sentence) => {
    expect(await check(...args)).toMatchObject({ code: 2, stderr: expect.stringContaining(sentence) })
  })

  it('has a page of help, with its exit codes', async () => {
    const { code, stdout } = await check('--help')
    expect(code).toBe(0)
    expect(stdout.split('\n').length).toBeLessThan(60)
    expect(stdout.split('\n').filter((line) => line.length > 120)).toEqual([])
    expect(stdout).toContain('Exit codes: 0')
  })
})
