import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { startRedis } from 'webmq-services'

const BENCHMARK = fileURLToPath(new URL('../benchmark.js', import.meta.url))

/** Each a real one of the run's own. */
const BROKERS = ['rabbitmq', 'redis', 'nats', 'mesh'] as const

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
  await vi.waitFor(() => expect(run.output()).toContain('publishing'), { interval: 50 })
  const [, port, pid] = /port (\d+), process (\d+)/.exec(run.output()) ?? []
  expect(await isListening(Number(port))).toBe(true)
  return { port: Number(port), pid: Number(pid) }
}

interface Process {
  readonly pid: number
  readonly command: string
}

/** Everything that a process has started, whatever group it is in. */
async function descendantsOf(pid: number): Promise<Process[]> {
  const children = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => ''))
    .split(' ')
    .filter(Boolean)
  const found = await Promise.all(
    children.map(async (child) => {
      const command = await readFile(`/proc/${child}/cmdline`, 'utf8').catch(() => '')
      return [{ pid: Number(child), command }, ...(await descendantsOf(Number(child)))]
    }),
  )
  return found.flat()
}

/** Seen from outside: a process that waits to be reaped still has an id. */
async function isRunning(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ') Z')
  return !/\) [ZX]/.test(stat)
}

describe('benchmark.js', () => {
  let directory: string

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'webmq-bench-'))
  })
  afterAll(async () => {
    await rm(directory, { recursive: true })
  })

  it('runs at the root of a checkout too, and says first which broker it uses and how to take RabbitMQ', async () => {
    const program = fileURLToPath(new URL('../../../benchmark.js', import.meta.url))
    const args = ['--clients', '4', '--duration', '0.5', '--warmup', '0', '--no-progress']
    const { stdout } = await promisify(execFile)(process.execPath, [program, ...args])
    expect(stdout.split('\n')[0]).toBe(
      'Benchmark: clients, broker: memory, in the one server; --broker rabbitmq takes RabbitMQ',
    )
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

  it('lets the load generator play the clients, over a broker too', async () => {
    const file = join(directory, 'generator.json')
    const load = ['--clients', '10', '--duration', '1', '--warmup', '0.2', '--clients-by', 'generator']
    const asserted = ['loss=0', 'duplicates=0', 'reordered=0', 'closes=0', 'unexpected=0', 'publishErrors=0']
    const asserts = asserted.flatMap((condition) => ['--assert', condition])
    const { output, exited } = benchmark(...load, '--backends', '2', '--broker', 'redis', ...asserts, '--json', file)

    expect(await exited, output()).toBe(0)
    expect(output()).toContain('Clients by: generator (1 thread, seed 1)')
    const { config, results, irregularities, generator } = JSON.parse(await readFile(file, 'utf8'))
    expect(config).toMatchObject({ clientsBy: 'generator', workers: 1 })
    expect(results).toMatchObject({ publishedCount: 50, perBackend: [{ clientCount: 5 }, { clientCount: 5 }] })
    expect(results.deliveredCount).toBe(results.expectedCount)
    expect(irregularities).toMatchObject({ unacknowledgedCount: 0, clientErrorCount: 0, gapCount: 0 })
    expect(generator.cpuSeconds).toBeGreaterThan(0)
  })

  it.each(BROKERS)('measures several backends over %s: what one publishes the clients of all get', async (broker) => {
    const file = join(directory, `${broker}.json`)
    const load = ['--clients', '8', '--backends', '3', '--broker', broker, '--duration', '1', '--warmup', '0.2']
    const { output, exited } = benchmark(...load, '--assert', 'loss=0', '--json', file)
    expect(await exited, output()).toBe(0)
    const record = JSON.parse(await readFile(file, 'utf8'))
    expect(record.config).toMatchObject({ backends: 3, broker })
    // 8 clients x 5/s x 1 s, to 4 keys that all listen to: everything goes everywhere.
    expect(record.results).toMatchObject({
      publishedCount: 40,
      deliveredCount: 320,
      lossRatio: 0,
      duplicateCount: 0,
      reorderedCount: 0,
    })
    expect(record.irregularities).toMatchObject({ unexpectedCount: 0, publishErrorCount: 0, gapCount: 0 })
    const { perBackend } = record.results
    expect(perBackend.map(({ clientCount }: { clientCount: number }) => clientCount)).toEqual([3, 3, 2])
    expect(perBackend.map(({ deliveredCount }: { deliveredCount: number }) => deliveredCount)).toEqual([120, 120, 80])
    expect(record.broker.cpuSeconds === null).toBe(broker === 'mesh')
    expect(record.total.cpuSeconds).toBeCloseTo(record.server.cpuSeconds + (record.broker.cpuSeconds ?? 0), 9)
    expect(/Broker: CPU \d+\.\d\d s/.test(output())).toBe(broker !== 'mesh')
  })

  it('uses a broker that it is given and leaves it alone', async () => {
    const redis = await startRedis({ isPrivate: true })
    onTestFinished(() => redis.stop())
    const load = ['--clients', '4', '--backends', '2', '--broker', redis.url, '--duration', '0.5', '--warmup', '0']
    const { output, exited } = benchmark(...load, '--assert', 'loss=0')
    expect(await exited, output()).toBe(0)
    expect(output()).toContain(`broker ${redis.url})`)
    expect(output()).not.toContain('Broker: CPU')
    expect(await isListening(Number(new URL(redis.url).port))).toBe(true)
  })

  it.each(['SIGINT', 'SIGKILL'] as const)('leaves no broker behind after %s', async (signal) => {
    const run = benchmark('--clients', '2', '--backends', '2', '--broker', 'redis', '--duration', '60', '--warmup', '0')
    await publishing(run)
    const descendants = await descendantsOf(run.child.pid ?? 0)
    expect(descendants.map(({ command }) => command)).toContainEqual(expect.stringContaining('redis-server'))
    run.child.kill(signal)
    await run.exited
    await vi.waitFor(
      async () => {
        expect((await Promise.all(descendants.map(({ pid }) => isRunning(pid)))).filter(Boolean)).toEqual([])
      },
      { interval: 50 },
    )
  })

  it('ends with 130 on Ctrl-C while its broker starts, and leaves none behind', async () => {
    const run = benchmark('--clients', '2', '--backends', '2', '--duration', '60')
    await vi.waitFor(() => expect(run.output()).toContain('starting rabbitmq'), { interval: 50 })
    const descendants = await vi.waitFor(async () => {
      const found = await descendantsOf(run.child.pid ?? 0)
      expect(found.map(({ command }) => command)).toContainEqual(expect.stringContaining('epmd'))
      return found
    })
    run.child.kill('SIGINT')
    expect(await run.exited, run.output()).toBe(130)
    expect((await Promise.all(descendants.map(({ pid }) => isRunning(pid)))).filter(Boolean)).toEqual([])
  })

  it.each(['library', 'generator'])(
    'ends with 130 on Ctrl-C, writes what it has measured, and leaves no backend behind: clients by %s',
    async (clientsBy) => {
      const file = join(directory, `interrupted-${clientsBy}.json`)
      const load = ['--clients', '2', '--duration', '60', '--warmup', '0', '--clients-by', clientsBy]
      const run = benchmark(...load, '--json', file)
      const { port } = await publishing(run)
      await vi.waitFor(() => expect(run.output()).toMatch(/[1-9]\d* published/), { timeout: 10_000, interval: 50 })
      run.child.kill('SIGINT')
      expect(await run.exited, run.output()).toBe(130)
      expect(run.output()).toContain('Interrupted: a partial result.')
      expect(await isListening(port)).toBe(false)
      const { interrupted, results, rates, cores } = JSON.parse(await readFile(file, 'utf8'))
      expect(interrupted).toBe(true)
      expect(results.publishedCount).toBeGreaterThan(0)
      expect(rates.expectedPerSecond).toBeGreaterThan(results.expectedCount / 60)
      expect(cores.busy).toBeGreaterThan(0)
    },
  )

  it('writes the rounds that were over when Ctrl-C comes', async () => {
    const file = join(directory, 'rounds.json')
    const load = [
      '--scenario',
      'brokers',
      '--brokers',
      'memory',
      '--sizes',
      '2x1',
      '--duration',
      '0.5',
      '--warmup',
      '0',
    ]
    const run = benchmark(...load, '--repeat', '9', '--json', file)
    await vi.waitFor(() => expect(run.output()).toContain('[2/9]'), { timeout: 30_000, interval: 50 })
    run.child.kill('SIGINT')
    expect(await run.exited, run.output()).toBe(130)
    expect(JSON.parse(await readFile(file, 'utf8'))).toMatchObject({ interrupted: true, rows: [{ repeatCount: 1 }] })
  })

  it('tells at once, in its own words, why a broker refuses', async () => {
    const load = ['--clients', '2', '--backends', '2', '--duration', '60']
    const nobody = benchmark(...load, '--broker', 'redis://127.0.0.1:1')
    expect(await nobody.exited).toBe(1)
    expect(nobody.output()).toContain('the broker is not reached yet: redis://127.0.0.1:1: connect ECONNREFUSED')
    const redis = await startRedis({ isPrivate: true })
    onTestFinished(() => redis.stop())
    const stranger = benchmark(...load, '--broker', redis.url.replace('redis://', 'redis://me:wrong@'))
    expect(await stranger.exited).toBe(1)
    expect(stranger.output()).toMatch(/broker refuses this server: WRONGPASS[^\n]*\n$/)
  })

  it('leaves no backend behind when it is killed', async () => {
    const run = benchmark('--clients', '2', '--duration', '60', '--warmup', '0')
    const { port } = await publishing(run)
    run.child.kill('SIGKILL')
    await run.exited
    await vi.waitFor(async () => expect(await isListening(port)).toBe(false), { interval: 50 })
  })

  it('ends with 1 and the reason when a backend dies', async () => {
    const run = benchmark('--clients', '2', '--duration', '60', '--warmup', '0')
    process.kill((await publishing(run)).pid, 'SIGKILL')
    expect(await run.exited).toBe(1)
    expect(run.output()).toContain('backend 0 was ended by SIGKILL')
  })
})
