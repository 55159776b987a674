import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest'
import { findLoadgen } from '../src/loadgen/find.js'
import type { ResultRecord, ResultRow } from '../src/results/result.js'

export const BENCHMARK = fileURLToPath(new URL('../benchmark.js', import.meta.url))
/** A release build of the load generator from nothing, on a busy machine. */
const BUILD_TIMEOUT_MS = 240_000
/** Benches are whole programs, several one after the other; other tests may have the machine meanwhile. */
export const RUN_TIMEOUT_MS = 90_000

/** What a run of the bench said and wrote. */
interface BenchRun {
  readonly exitCode: number | null
  readonly output: string
  readonly record: () => Promise<ResultRecord>
  readonly file: string
}

/**
 * Runs the built benchmark.js as a user does, in a folder that goes when the tests of the file are over.
 * @param hasLoadgen Builds the load generator where it is not built yet; default true.
 */
export function useBench({ hasLoadgen = true } = {}) {
  let directory = ''
  let fileCount = 0

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'webmq-bench-'))
    if (hasLoadgen) await findLoadgen({ phase: () => undefined, note: () => undefined })
  }, BUILD_TIMEOUT_MS)
  afterAll(async () => {
    await rm(directory, { recursive: true })
  })

  /** Once per condition. */
  async function benchmark(scenario: string, ...flags: string[]): Promise<BenchRun> {
    const file = join(directory, `${++fileCount}.json`)
    const args = ['--scenario', scenario, '--repeat', '1', '--no-progress', '--json', file, ...flags]
    const child = spawn(process.execPath, [BENCHMARK, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
    onTestFinished(() => {
      child.kill('SIGKILL')
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (output += text))
    const exitCode = await new Promise<number | null>((resolve) => child.once('close', resolve))
    const record = async () => JSON.parse(await readFile(file, 'utf8')) as ResultRecord
    return { exitCode, output, record, file }
  }

  /** Rows of a run that must have gone well. */
  async function rowsOf(scenario: string, ...flags: string[]): Promise<readonly ResultRow[]> {
    const { exitCode, output, record } = await benchmark(scenario, ...flags)
    expect(exitCode, output).toBe(0)
    const { rows } = await record()
    const sound = ['ok', 'server saturated', 'generator saturated', 'machine saturated']
    for (const row of rows) expect(sound, output).toContain(row.verdict)
    return rows
  }

  return { benchmark, rowsOf, fileNamed: (name: string) => join(directory, name) }
}
