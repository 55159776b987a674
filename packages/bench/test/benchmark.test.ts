import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'

const BENCHMARK = fileURLToPath(new URL('../benchmark.js', import.meta.url))

interface Run {
  readonly child: ChildProcess
  readonly output: () => string
  readonly exited: Promise<number | null>
}

/** Runs the built benchmark.js as a user does. */
function benchmark(...args: string[]): Run {
  const child = spawn(process.execPath, [BENCHMARK, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  onTestFinished(() => {
    child.kill('SIGKILL')
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (output += text))
  const exited = new Promise<number | null>((resolve) => child.once('close', resolve))
  return { child, output: () => output, exited }
}

/** Whether the backend is alive, seen from outside: a process that waits to be reaped still has an id, but no port. */
async function isListening(port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port })
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}

/** Waits until the clients publish; gives the backend's port and process id. */
async function publishing(run: Run): Promise<{ readonly port: number; readonly pid: number }> {
  await vi.waitFor(() => expect(run.output()).toContain('publishing'), { timeout: 15_000, interval: 50 })
  const [, port, pid] = /port (\d+), process (\d+)/.exec(run.output()) ?? []
  expect(await isListening(Number(port))).toBe(true)
  return { port: Number(port), pid: Number(pid) }
}

describe('benchmark.js', () => {
  let directory: string

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'webmq-bench-'))
  })
  afterAll(async () => {
    await rm(directory, { recursive: true })
  })

  it('measures a real server: nothing lost, doubled or out of order, and says so in print and as JSON', async () => {
    const file = join(directory, 'result.json')
    const load = ['--clients', '10', '--duration', '2', '--warmup', '0.5', '--listens', '3']
    const args = [...load, '--assert', 'loss=0', '--assert', 'duplicates=0', '--assert', 'reordered=0', '--json', file]
    const { output, exited } = benchmark(...args)

    expect(await exited, output()).toBe(0)
    expect(output()).toMatch(/Loss: 0\.00%/)
    expect(output()).toMatch(/Backend 0 \(port \d+\): \d+ msg\/s/)

    const record = JSON.parse(await readFile(file, 'utf8'))
    const { results } = record
    expect(record.command).toBe(`node benchmark.js ${args.join(' ')}`)
    expect(record.scenario).toBe('clients')
    expect(record.machine).toMatchObject({ nodeVersion: process.version, cores: expect.any(Number) })
    expect(record.config).toMatchObject({ clients: 10, backends: 1, listens: 3, keyPoolSize: 5, duration: 2, seed: 1 })
    expect(Object.keys(results).sort()).toEqual([
      'deliveredCount',
      'drainMs',
      'duplicateCount',
      'expectedCount',
      'fanOutRatio',
      'latencyMs',
      'lossRatio',
      'perBackend',
      'publishedCount',
      'reorderedCount',
    ])
    // 10 clients x 5/s x 2 s, to 5 keys of which each client has 3: 6 listeners on average.
    expect(results.publishedCount).toBe(100)
    expect(results).toMatchObject({ lossRatio: 0, duplicateCount: 0, reorderedCount: 0 })
    expect(results.deliveredCount).toBe(results.expectedCount)
    expect(results.fanOutRatio).toBeGreaterThan(4)
    expect(results.fanOutRatio).toBeLessThan(8)
    const { p50, p95, p99, max } = results.latencyMs
    expect([p50, p95, p99, max]).toEqual([p50, p95, p99, max].sort((a, b) => a - b))
    expect(p50).toBeGreaterThan(0)
    expect(results.perBackend).toMatchObject([{ backend: 0, clientCount: 10, deliveredCount: results.deliveredCount }])
    expect(results.perBackend[0].serverCpuSeconds).toBeGreaterThan(0)
    expect(results.perBackend[0].serverRssBytes).toBeGreaterThan(10_000_000)
    expect(record.irregularities).toMatchObject({
      publishErrorCount: 0,
      unacknowledgedCount: 0,
      reconnectCount: 0,
      unexpectedCount: 0,
    })
  })

  it('ends with 3 when an assertion does not hold', async () => {
    const { output, exited } = benchmark('--clients', '2', '--duration', '0.5', '--warmup', '0', '--assert', 'p50<1us')
    expect(await exited, output()).toBe(3)
    expect(output()).toMatch(/FAILS: p50<1us \(\d/)
  })

  it('ends with 130 on Ctrl-C and leaves no backend behind', async () => {
    const run = benchmark('--clients', '2', '--duration', '60', '--warmup', '0')
    const { port } = await publishing(run)
    run.child.kill('SIGINT')
    expect(await run.exited, run.output()).toBe(130)
    expect(await isListening(port)).toBe(false)
  })

  it('leaves no backend behind when it is killed', async () => {
    const run = benchmark('--clients', '2', '--duration', '60', '--warmup', '0')
    const { port } = await publishing(run)
    run.child.kill('SIGKILL')
    await run.exited
    await vi.waitFor(async () => expect(await isListening(port)).toBe(false), { timeout: 5_000, interval: 50 })
  })

  it('ends with 1 and the reason when a backend dies', async () => {
    const run = benchmark('--clients', '2', '--duration', '60', '--warmup', '0')
    process.kill((await publishing(run)).pid, 'SIGKILL')
    expect(await run.exited).toBe(1)
    expect(run.output()).toContain('backend 0 was ended by SIGKILL')
  })
})
