import { describe, expect, it } from 'vitest'
import type { HistoryRow } from '../src/scenarios/history/result.js'
import { useBench } from './bench-run.js'

/** A run takes ten seconds, for an iteration has its pauses; there are five in a row, on a machine that may be busy. */
const RUN_TIMEOUT_MS = 240_000
const LOAD = ['--users', '60', '--duration', '3', '--rounds', '1', '--sending-rate', '1']

describe('the history scenario', { timeout: RUN_TIMEOUT_MS }, () => {
  const { benchmark } = useBench()

  async function history(...flags: string[]) {
    const { exitCode, output, record } = await benchmark('history', ...LOAD, ...flags)
    expect(exitCode, output).toBe(0)
    return { output, rows: (await record()).rows as readonly HistoryRow[] }
  }

  it('plays users who get everything once and in order, and says so as the seed does', async () => {
    const { output, rows } = await history('--assert', 'joinMissCount=0', '--assert', 'historyMs.p95 < 10s')
    const [row] = rows
    expect(row, output).toMatchObject({ target: 'webmq-native', backends: 1, subscribers: 60, verdict: 'ok' })
    expect(row).toMatchObject({ connectionRatio: 1, subscriptionRatio: 1, historyRatio: 1, unackedCount: 0 })
    expect(row).toMatchObject({ gapCount: 0, duplicateCount: 0, inversionCount: 0 })
    expect(row).toMatchObject({ joinDuplicateCount: 0, joinInversionCount: 0 })
    // Every user has come before the ramp goes down, and stays for one iteration; one in three sends in each of its rounds.
    const { report } = row as HistoryRow
    expect(report).toMatchObject({ iterations: 60, interrupted: 0, broadcastsSent: 20 * 3 })
    expect(report.acksReceived).toBe(report.broadcastsSent)
    expect(report.verified).toMatchObject({ sessions: report.iterations, histories: report.iterations })
    expect(report.verified.live.expected).toBeGreaterThan(report.broadcastsSent)
    expect(report.verified.joined.expected).toBeGreaterThanOrEqual(report.verified.live.expected)
    for (const trend of [row?.broadcastMs, row?.historyMs, row?.rttMs, row?.subackMs, row?.connectingMs]) {
      expect(trend?.min).toBeGreaterThan(0)
      expect(trend?.max).toBeGreaterThanOrEqual(trend?.p95 ?? Number.NaN)
    }
    expect(row?.serverCpuSeconds).toBeGreaterThan(0)
    expect(row?.serverPeakRssBytes).toBeGreaterThan(1_000_000)
    for (const text of ['✓ history received', 'acks_rcvd............: ', 'broadcast_duration...: avg=']) {
      expect(output).toContain(text)
    }
  })

  it('reports a history that nobody keeps as the seed does', async () => {
    const { output, rows } = await history('--broker', 'none')
    expect(rows[0], output).toMatchObject({ target: 'webmq-native-no-history', historyRatio: 0, verdict: 'ok' })
    expect(rows[0]).toMatchObject({ gapCount: 0, joinCount: 0, subscriptionRatio: 1 })
    expect(output).toContain('✗ history received')
  })

  it('plays on several nodes behind a load balancer, and tells what others have had', async () => {
    const { output, rows } = await history('--cases', 'redis3,nats3,rabbitmq3,mesh3,none3')
    expect(
      rows.map(({ target, verdict }) => [target, verdict]),
      output,
    ).toEqual([
      ['webmq-native+redis', 'ok'],
      ['webmq-native+nats', 'ok'],
      ['webmq-native+rabbitmq', 'ok'],
      ['webmq-native+mesh', 'ok'],
      ['webmq-native+redis-no-history', 'ok'],
    ])
    for (const row of rows) {
      expect(row).toMatchObject({ backends: 3, connectionRatio: 1, subscriptionRatio: 1 })
      expect(row).toMatchObject({ gapCount: 0, duplicateCount: 0, inversionCount: 0 })
      expect(row.balancerCpuSeconds).toBeGreaterThan(0)
      if (row.target.endsWith('mesh')) continue
      expect(row.brokerCpuSeconds).toBeGreaterThanOrEqual(0)
      expect(row.brokerPeakRssBytes).toBeGreaterThan(1_000_000)
    }
    for (const row of rows.slice(0, 4)) {
      expect(row).toMatchObject({ historyRatio: 1, joinCount: 60, joinMissCount: 0 })
      expect(row).toMatchObject({ joinDuplicateCount: 0, joinInversionCount: 0 })
    }
    expect(output).toContain('AnyCable redis (published)')
    expect(output).toContain('another machine of 2 cores')
  })
})
