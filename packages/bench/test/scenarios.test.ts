import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { BENCHMARK, RUN_TIMEOUT_MS, useBench } from './bench-run.js'

describe('a scenario of targets and tiers', { timeout: RUN_TIMEOUT_MS }, () => {
  const { benchmark, rowsOf, fileNamed } = useBench()

  it.each(['rabbitmq', 'redis', 'nats', 'mesh'])(
    'floods from one node to the connections of another over %s',
    async (mode) => {
      const load = ['--tiers', '10', '--duration', '0.5', '--warmup', '0.2', '--target', 'webmq-native,webmq-uws']
      const rows = await rowsOf('fanout', '--mode', mode, ...load)
      expect(rows.map(({ target }) => target)).toEqual(['webmq-native', 'webmq-uws'])
      for (const row of rows) {
        expect(row).toMatchObject({ mode, subscribers: 10, gapCount: 0, duplicateCount: 0, closedCount: 0 })
        expect(row.publishedPerSecond).toBeGreaterThan(100)
        const [a, b, broker] = [row.publisherCpuSeconds, row.listenerCpuSeconds, row.brokerCpuSeconds].map(Number)
        expect(Math.min(a ?? 0, b ?? 0)).toBeGreaterThan(0)
        expect(row.serverCpuSeconds).toBeCloseTo((a ?? 0) + (b ?? 0), 9)
        const deliveries = Number(row.deliveriesPerServerCpuSecond) * Number(row.serverCpuSeconds)
        const totalCpuSeconds = Number(row.serverCpuSeconds) + (broker ?? 0)
        expect(Number(row.deliveriesPerTotalCpuSecond) * totalCpuSeconds).toBeCloseTo(deliveries, 3)
        expect(deliveries).toBeGreaterThan(1_000)
      }
    },
  )

  it('runs the clients scenario on several brokers as one table, every run kept', async () => {
    const out = fileNamed('brokers')
    const load = ['--sizes', '4x1,4x2', '--brokers', 'memory,redis', '--duration', '0.5', '--warmup', '0', '--out', out]
    const { exitCode, output, record } = await benchmark('brokers', ...load, '--assert', 'gapCount=0')
    expect(exitCode, output).toBe(0)
    const { rows } = await record()
    expect(rows.map(({ target, backends, verdict }) => [target, backends, verdict === 'failed'])).toEqual([
      ['webmq-native', 1, false],
      ['webmq-native+redis', 1, false],
      ['webmq-native+redis', 2, false],
    ])
    const command = 'node benchmark.js --clients 4 --backends 2 --broker redis --duration 0.5 --warmup 0'
    expect(rows[2]?.command).toBe(command)
    expect(output).toContain(command)
    const single = JSON.parse(await readFile(join(out, 'redis-4x2-1.json'), 'utf8'))
    expect(single.results.deliveredCount).toBe(single.results.expectedCount)
    expect(await readFile(join(out, 'redis-4x2-1.txt'), 'utf8')).toContain('Backend Distribution:')
  })

  it('plays everyday traffic on WebMQ and on a server by hand, and divides their cost', async () => {
    const rows = await rowsOf(
      'everyday',
      '--brokers',
      'memory',
      '--clients',
      '10',
      '--duration',
      '1',
      '--warmup',
      '0.2',
    )
    expect(rows.map(({ target, mode, backends }) => [target, mode, backends])).toEqual([
      ['webmq-native', 'memory', 1],
      ['by-hand', 'memory', 1],
    ])
    for (const row of rows) {
      // 10 clients x 5/s x 1 s, to 5 keys that all listen to.
      expect(row).toMatchObject({ subscribers: 10, deliveredRatio: 1, acknowledgedRatio: 1, publishErrorCount: 0 })
      expect(Number(row.serverCpuUsPerDelivery) * 500).toBeCloseTo(Number(row.serverCpuSeconds) * 1_000_000, 3)
    }
    const [own, byHand] = rows.map(({ serverCpuUsPerDelivery }) => Number(serverCpuUsPerDelivery))
    expect(rows.map(({ byHandRatio }) => byHandRatio)).toEqual([Number(own) / Number(byHand), null])
  })

  it.each(['rabbitmq', 'redis', 'nats', 'mesh'])('has a server by hand that delivers over %s', async (broker) => {
    const load = ['--clients', '6', '--backends', '2', '--duration', '0.5', '--warmup', '0.2', '--target', 'by-hand']
    const [row] = await rowsOf('everyday', '--brokers', broker, ...load)
    expect(row).toMatchObject({ target: 'by-hand', mode: broker, backends: 2, deliveredRatio: 1, acknowledgedRatio: 1 })
  })

  it('publishes at a rate and tells latencies', async () => {
    const load = ['--tiers', '10', '--duration', '0.5', '--warmup', '0.1', '--rate', '200']
    for (const row of await rowsOf('paced', ...load, '--target', 'webmq-native,raw-loop')) {
      expect(row).toMatchObject({ subscribers: 10, ratePerSecond: 200, gapCount: 0, duplicateCount: 0 })
      const { p50, p95, p99, max } = row.latencyMs ?? {}
      expect([p50, p95, p99, max]).toEqual([p50, p95, p99, max].toSorted((a, b) => Number(a) - Number(b)))
      expect(p50).toBeGreaterThan(0)
      expect(row.fanoutMs).toMatchObject({ p99: expect.any(Number) })
    }
  })

  it('appends to streams, and publishes the same to rooms', async () => {
    const load = [
      '--tiers',
      '10',
      '--streams',
      '3',
      '--duration',
      '0.5',
      '--warmup',
      '0.1',
      '--rate',
      '50',
      '--repeat',
      '1',
    ]
    const rows = await rowsOf('streams', ...load)
    expect(rows.map(({ target, mode }) => `${target} ${mode}`).toSorted()).toEqual([
      'socketio messages',
      'webmq-native messages',
      'webmq-native streams',
    ])
    for (const row of rows) {
      expect(row).toMatchObject({ subscribers: 10, gapCount: 0, duplicateCount: 0 })
      expect(Number(row.deliveriesPerServerCpuSecond) * Number(row.serverCpuSeconds)).toBeGreaterThan(50)
    }
  })

  it('counts connections that bring a token, pings and what is processed', async () => {
    const storm = await rowsOf('storm', '--tiers', '50', '--target', 'webmq-native,uws,ws')
    for (const row of storm) {
      expect(row).toMatchObject({ mode: 'jwt', subscribers: 50, failedCount: 0 })
      expect(row.connectsPerSecond).toBeGreaterThan(10)
      expect(row.connectsPerServerCpuSecond).toBeGreaterThan(10)
    }
    const ping = await rowsOf('ping', '--tiers', '20', '--pings', '10', '--target', 'webmq-native,socketio')
    for (const row of ping) expect(row).toMatchObject({ pingCount: 200, missingCount: 0 })

    const load = ['--tiers', '10', '--duration', '0.3', '--warmup', '0.1', '--target', 'webmq-native']
    const [throughput] = await rowsOf('throughput', ...load)
    expect(throughput).toMatchObject({ subscribers: 10, gapCount: 0 })
    expect(throughput?.receivedPerSecond).toBeGreaterThan(1_000)
    const formats = await rowsOf('formats', ...load)
    expect(formats.map(({ mode }) => mode)).toEqual(['json', 'msgpack', 'compressed'])
    const [json, msgpack, compressed] = formats.map(({ messageBytes }) => Number(messageBytes))
    expect(json).toBe(175 + 'publish - bench.in\n'.length)
    expect(msgpack).toBeLessThan(json ?? 0)
    expect(compressed).toBeLessThan(json ?? 0)
  })

  it('kills a node whose clients come back to it, or to another, while others listen', async () => {
    const load = ['--tiers', '60', '--others', '5', '--rate', '50', '--target', 'webmq-native,ws']
    const rows = await rowsOf('restart', ...load)
    expect(rows.map(({ target, mode }) => [target, mode])).toEqual([
      ['webmq-native', 'to the same node'],
      ['ws', 'to the same node'],
      ['webmq-native', 'to another node'],
      ['ws', 'to another node'],
    ])
    for (const row of rows) {
      expect(row).toMatchObject({ subscribers: 60, failedCount: 0, gapCount: 0 })
      expect(row.backMs).toBeGreaterThan(0)
      expect(row.latencyMs?.p99).toBeGreaterThan(0)
      expect(row.quietMs).toMatchObject({ p99: expect.any(Number) })
    }
  })

  it('counts what a server with tokens, limits, metrics and an audit log processes', async () => {
    const load = ['--tiers', '10', '--duration', '0.3', '--warmup', '0.1', '--target', 'webmq-guarded']
    const [row] = await rowsOf('throughput', ...load)
    expect(row).toMatchObject({ target: 'webmq-guarded', gapCount: 0, verdict: expect.not.stringMatching('failed') })
    expect(row?.receivedPerSecond).toBeGreaterThan(0)
  })

  it('holds, searches, matches, and looks at slow and idle connections', async () => {
    const [hold] = await rowsOf(
      'hold',
      '--tiers',
      '20',
      '--duration',
      '0.4',
      '--ping-interval',
      '0.2',
      '--target',
      'webmq-native',
    )
    expect(hold).toMatchObject({ survivalRatio: 1, pingCount: 40, missingCount: 0 })

    const [limit] = await rowsOf('limit', '--tiers', '20', '--max', '40', '--hold', '0', '--backends', '2')
    expect(limit).toMatchObject({ maxConnections: 40, limitReason: 'no more were tried' })

    const wildcard = await rowsOf('wildcard', '--tiers', '100,300', '--publishes', '2000')
    expect(wildcard.map(({ patterns, matchCostRatio }) => [patterns, typeof matchCostRatio])).toEqual([
      [100, 'number'],
      [300, 'number'],
    ])
    expect(wildcard[0]).toMatchObject({ matchCostRatio: 1 })

    const load = ['--tiers', '20', '--duration', '0.3', '--rate', '100', '--share', '0.1', '--target', 'webmq-native']
    const [slow] = await rowsOf('slow', ...load)
    expect(slow).toMatchObject({ slowShare: 0.1, slowCount: 2, gapCount: 0 })

    const [idle] = await rowsOf('idle', '--tiers', '50', '--duration', '0.1', '--target', 'raw')
    expect(idle?.bytesPerConnection).toEqual(expect.any(Number))
  })

  it('replays a long log to one client while others get what is live', async () => {
    const load = ['--tiers', '10', '--messages', '3000', '--duration', '0.5', '--rate', '100', '--windows', '1']
    const [row] = await rowsOf('replay', ...load)
    expect(row).toMatchObject({ subscribers: 10, messages: 3_000, gapCount: 0, disorderCount: 0 })
    expect(row?.replayCount).toBeGreaterThanOrEqual(1)
    // More than fits into one page.
    expect(row?.pagesPerReplay).toBeGreaterThan(1)
    expect(row?.replayedPerSecond).toBeGreaterThan(0)
    expect(row?.quietMs).toMatchObject({ p50: expect.any(Number), p99: expect.any(Number) })
    expect(row?.latencyMs).toMatchObject({ p50: expect.any(Number), p99: expect.any(Number) })
    expect(row?.fullRssBytes).toBeGreaterThan(0)
  })

  it('resumes several listens together, and publishes beside them', async () => {
    const load = ['--tiers', '10', '--messages', '3000', '--duration', '0.5', '--rate', '100', '--windows', '1']
    const rows = await rowsOf('replay', ...load, '--listens', '1,4')
    expect(rows.map(({ listens }) => listens)).toEqual([1, 4])
    for (const row of rows) {
      expect(row).toMatchObject({ messages: 3_000, gapCount: 0, disorderCount: 0 })
      expect(row.publishMs).toMatchObject({ p50: expect.any(Number), max: expect.any(Number) })
    }
    // Each listen has more than fits into one page.
    expect(rows[1]?.pagesPerReplay).toBeGreaterThanOrEqual(8)
  })

  it('goes on when a target cannot, and says so', async () => {
    // An outbox that no message fits into: the server refuses to start.
    const load = ['--tiers', '10', '--duration', '0.1', '--warmup', '0', '--max-outbox', '10']
    const flags = [...load, '--target', 'webmq-native,raw', '--assert', 'gapCount=0']
    const { exitCode, output, record } = await benchmark('fanout', ...flags)
    expect(exitCode, output).toBe(3)
    expect(output).toContain('FAILS: gapCount=0 (nothing measured)')
    const { rows } = await record()
    expect(rows.map(({ target }) => target)).toEqual(['webmq-native', 'raw'])
    expect(rows[0]?.verdict).toBe('failed')
    expect(rows[1]?.verdict).toBeOneOf(['ok', 'generator saturated'])
    expect(rows[0]?.verdictReason).toMatch(/target webmq-native ended with exit code 1; .*maxOutboxBytes/s)
  })

  it.each([
    ['SIGINT', 130],
    ['SIGKILL', null],
  ] as const)('leaves no process behind after %s', async (signal, expected) => {
    const args = ['--scenario', 'fanout', '--tiers', '10', '--duration', '60', '--target', 'webmq-native']
    const child = spawn(process.execPath, [BENCHMARK, ...args], { stdio: ['ignore', 'ignore', 'pipe'] })
    onTestFinished(() => {
      child.kill('SIGKILL')
    })
    let output = ''
    child.stderr.on('data', (text) => (output += text))
    const exited = new Promise<number | null>((resolve) => child.once('close', resolve))
    await vi.waitFor(() => expect(output).toContain('[1/3] webmq-native'), { timeout: 30_000, interval: 50 })
    const children = await vi.waitFor(async () => {
      const pids = (await readFile(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8')).split(' ').filter(Boolean)
      expect(pids).toHaveLength(2)
      return pids
    })
    child.kill(signal)
    expect(await exited, output).toBe(expected)
    await vi.waitFor(async () => expect(await Promise.all(children.map(isRunning))).toEqual([false, false]))
  })
})

/** Seen from outside: a process that waits to be reaped still has an id. */
async function isRunning(pid: string): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ') Z')
  return !/\) [ZX]/.test(stat)
}
