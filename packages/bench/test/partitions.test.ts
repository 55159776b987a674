import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import type { ResultRecord } from '../src/results/result.js'

const BENCHMARK = fileURLToPath(new URL('../benchmark.js', import.meta.url))
const LOAD = ['--rooms', '40', '--share', '0.25', '--rate', '400', '--warmup', '0.2', '--duration', '0.8']

/** Runs the built benchmark.js as a user does. */
async function partitions(...flags: string[]) {
  const directory = await mkdtemp(join(tmpdir(), 'webmq-bench-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  const file = join(directory, 'partitions.json')
  const args = ['--scenario', 'partitions', ...LOAD, '--no-progress', '--json', file, ...flags]
  const child = spawn(process.execPath, [BENCHMARK, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  onTestFinished(() => {
    child.kill('SIGKILL')
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (output += text))
  const exitCode = await new Promise<number | null>((resolve) => child.once('close', resolve))
  return { exitCode, output, rows: async () => (JSON.parse(await readFile(file, 'utf8')) as ResultRecord).rows }
}

it('measures a node that needs some of the rooms, which gets the messages of its partition alone', async () => {
  const { exitCode, output, rows } = await partitions('--brokers', 'redis', '--tiers', '4', '--layouts', 'sharded')
  expect(exitCode, output).toBe(0)
  const [row] = await rows()
  expect(row, output).toMatchObject({ mode: 'redis', neededCount: 1, gapCount: 0, disorderCount: 0 })
  // Messages go to all rooms in turn, and a quarter of the rooms is in one partition, more or less.
  expect(Number(row?.receivedPerSecond)).toBeLessThan(0.7 * Number(row?.publishedPerSecond))
  for (const key of ['deliveriesPerSecond', 'receivedBytesPerSecond', 'serverCpuSeconds', 'connectionCount'])
    expect(row?.[key], key).toBeGreaterThan(0)
})

it('refuses what it cannot measure', async () => {
  for (const flags of [
    ['--brokers', 'mesh'],
    ['--share', '1.5'],
  ]) {
    const { exitCode, output } = await partitions(...flags)
    expect(exitCode, output).toBe(2)
  }
})
