import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { runCli } from '../cli.js'
import { DEFAULT_COEFFICIENTS } from './coefficients.js'
import { ROUND_COSTS } from './fixture.js'

async function model(...args: string[]) {
  const texts = { stdout: '', stderr: '' }
  const code = await runCli(['model', ...args], {
    stdout: { write: (text: string) => (texts.stdout += text) },
    stderr: { write: (text: string) => (texts.stderr += text) },
    signal: AbortSignal.abort(new Error('nothing is started')),
  })
  return { code, ...texts }
}

function fileOf(value: unknown): string {
  const folder = mkdtempSync(join(tmpdir(), 'webmq-bench-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'file.json')
  writeFileSync(file, JSON.stringify(value))
  return file
}

describe('benchmark.js model', () => {
  it('prints costs, predictions, walls and peers, with their assumptions', async () => {
    const costs = fileOf(ROUND_COSTS)
    const { code, stdout } = await model(
      '--costs',
      costs,
      '--workload',
      'chat',
      '--connections',
      '1e5,1e6',
      '--broker',
      'nats',
    )
    expect(code).toBe(0)
    expect(stdout).toContain('| a write to a socket | 4 µs |')
    expect(stdout).toMatch(/\| 100k \| nats \| 1 \| \d/)
    expect(stdout).toMatch(/\| 1M \| nats \| \d/)
    expect(stdout).toMatch(/\| chat \| nats \| [\d.]+[kMG] \|/)
    expect(stdout).toContain('"utilization":0.6')
    expect(stdout).not.toMatch(/\| (100k|1M|chat) \| redis/)
  })

  it('reads the costs that are checked in, and a result of the scenario', async () => {
    const { node, brokers, residuals, command, machine } = JSON.parse(readFileSync(DEFAULT_COEFFICIENTS, 'utf8'))
    const row = (mode: string, more: object) => ({
      target: 'webmq-native',
      mode,
      subscribers: 0,
      verdict: 'ok',
      ...more,
    })
    const rows = [
      row('memory', { node, residuals }),
      ...Object.entries(brokers).map(([mode, broker]) => row(mode, { broker, residuals: {} })),
    ]
    const result = fileOf({ scenario: 'costs', command, machine, columns: [], identity: [], rows })
    const [checkedIn, measured] = [
      await model('--workload', 'market'),
      await model('--workload', 'market', '--costs', result),
    ]
    expect(checkedIn.code).toBe(0)
    expect(measured.stdout).toBe(checkedIn.stdout)
    const saved = fileOf({})
    expect((await model('--costs', result, '--save', saved)).code).toBe(0)
    expect(JSON.parse(readFileSync(saved, 'utf8'))).toEqual({ command, machine, node, brokers, residuals })
  })

  it('compares with a result, and ends with 3 above the allowed error', async () => {
    const row = {
      target: 'webmq-native',
      mode: 'single',
      verdict: 'ok',
      subscribers: 100,
      ratePerSecond: 10,
      serverCpuSeconds: 1,
      deliveriesPerSecond: 1_000,
      latencyMs: { p99: 1 },
    }
    const result = fileOf({
      scenario: 'paced',
      command: '',
      machine: { cores: 2 },
      config: { duration: 1, payload: 100 },
      columns: [],
      identity: [],
      rows: [row],
    })
    const costs = fileOf(ROUND_COSTS)
    const { code, stdout } = await model('--costs', costs, '--check', result)
    expect(code).toBe(0)
    expect(stdout).toMatch(/\| 100 connections, 10\/s \| deliveries \| 1k \| 1k \| 0 % \|/)
    const strict = await model('--costs', costs, '--check', result, '--max-error', '1')
    expect(strict.code).toBe(3)
    expect(strict.stdout).toMatch(/FAILS: an error of \d+ % is above --max-error 1/)
  })

  it.each([
    [['--connections', '0'], /--connections.*from 1 to 1e10/],
    [['--connections', '1e11'], /--connections/],
    [['--connections', '0x10'], /--connections/],
    [['--connections', Array(21).fill('1').join(',')], /at most 20/],
    [['--broker', 'mesh'], /Allowed are memory, redis, nats, rabbitmq/],
    [['--workload', 'chess'], /there is no workload 'chess'/],
    [['--history-partitions', '65'], /at most 64/],
    [['--utilization', '1.5'], /at most 1/],
    [['--utilization', '0'], /above 0/],
    [['--costs', '/no/such/file'], /could not be read/],
    [['--check', '/no/such/file'], /could not be read/],
    [['stray'], /too many arguments/],
  ])('refuses %j with exit code 2', async (args, reason) => {
    const { code, stderr, stdout } = await model(...args)
    expect(stderr).toMatch(reason)
    expect(stdout).toBe('')
    expect(code).toBe(2)
  })

  it.each([
    [{}, /no coefficients of costs: node.baseBytes/],
    [{ ...ROUND_COSTS, node: { ...ROUND_COSTS.node, writeUs: -1 } }, /node.writeUs missing or below 0/],
    [{ ...ROUND_COSTS, brokers: { redis: {} } }, /brokers.redis.publisherUs/],
    [{ scenario: 'costs' }, /not a result of this bench/],
  ])('refuses costs without a figure', async (value, reason) => {
    const { code, stderr } = await model('--costs', fileOf(value))
    expect(stderr).toMatch(reason)
    expect(code).toBe(2)
  })

  it('has no broker that was not measured', async () => {
    const { nats, ...brokers } = ROUND_COSTS.brokers
    const { code, stderr } = await model('--costs', fileOf({ ...ROUND_COSTS, brokers }), '--broker', 'nats')
    expect(stderr).toMatch(/has no costs of nats/)
    expect(code).toBe(2)
    expect(nats).toBeDefined()
  })
})
