import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { findLoadgen } from '../src/loadgen/find.js'
import type { ResultRecord } from '../src/results/result.js'

const BENCHMARK = fileURLToPath(new URL('../benchmark.js', import.meta.url))
/** A release build of the load generator from nothing, on a busy machine. */
const BUILD_TIMEOUT_MS = 240_000
const RUN_TIMEOUT_MS = 120_000
const ASSERTION_FAILED = 3

describe('the hostile scenario', { timeout: RUN_TIMEOUT_MS }, () => {
  let directory: string

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'webmq-bench-'))
    await findLoadgen({ phase: () => undefined, note: () => undefined })
  }, BUILD_TIMEOUT_MS)
  afterAll(async () => {
    await rm(directory, { recursive: true })
  })

  /** Runs the built benchmark.js as a user does. */
  async function benchmark(...args: string[]) {
    const child = spawn(process.execPath, [BENCHMARK, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
    onTestFinished(() => {
      child.kill('SIGKILL')
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (output += text))
    const exitCode = await new Promise<number | null>((resolve) => child.once('close', resolve))
    return { exitCode, output }
  }

  it('measures the honest clients without and beside hostile ones, and compare reads it', async () => {
    const file = join(directory, 'hostile.json')
    const load = ['--connections', '60', '--hostile', '3', '--baseline', '1', '--duration', '1', '--no-progress']
    const cases = ['--case', 'malformed-messages,forged-tokens', '--json', file]
    const { exitCode, output } = await benchmark('--scenario', 'hostile', ...load, ...cases)
    // Latencies of a busy machine may break a condition; nothing else may.
    expect([0, ASSERTION_FAILED], output).toContain(exitCode)

    const { rows, assertions, series } = JSON.parse(await readFile(file, 'utf8')) as ResultRecord
    expect(rows.map((row) => row.case)).toEqual(['malformed-messages', 'forged-tokens'])
    for (const row of rows) {
      expect(row, output).toMatchObject({ subscribers: 60, lostCount: 0, duplicateCount: 0, honestClosedCount: 0 })
      expect(row, output).toMatchObject({ refusedCount: 0, healthFailedCount: 0, diedCount: 0, unansweredPingCount: 0 })
      expect(row.latencyMs?.p99).toBeGreaterThan(0)
      expect(row.baselineMs).toMatchObject({ p99: expect.any(Number) })
      expect(row.pingMs).toMatchObject({ p99: expect.any(Number) })
      expect(row.memoryShare).toBeLessThan(1)
      expect(row.hostile).toMatchObject({ bugs: {} })
    }
    const [malformed, forged] = rows
    expect(malformed?.hostile).toMatchObject({ closes: { 4500: expect.any(Number) } })
    expect(malformed?.hostile).toMatchObject({ errors: { E_MESSAGE_INVALID: expect.any(Number) } })
    expect(forged?.hostile).toMatchObject({ closes: { 4501: expect.any(Number) } })
    expect(assertions.map(({ text }) => text)).toContain('lostCount = 0')
    expect(series?.[0]).toMatchObject({ title: 'server memory', condition: { case: 'malformed-messages' } })

    const compared = await benchmark('compare', file, file, '--fail-on', 'worse', '--fail-on', 'missing')
    expect(compared.exitCode, compared.output).toBe(0)
  })
})
