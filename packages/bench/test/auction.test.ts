import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import type { ResultRow } from '../src/results/result.js'
import { RUN_TIMEOUT_MS, useBench } from './bench-run.js'

describe('the auction scenario', { timeout: RUN_TIMEOUT_MS }, () => {
  const { benchmark, fileNamed } = useBench()

  async function auction(...flags: string[]) {
    const { exitCode, output, record } = await benchmark('auction', '--tiers', '50', ...flags)
    expect(exitCode, output).toBe(0)
    const written = await record()
    return { output, record: written, rows: written.rows }
  }

  function expectEverything(row: ResultRow | undefined, output: string): void {
    expect(row, output).toMatchObject({ subscribers: 50, deliveryRate: 1 })
    // A busy machine is no fault of the system.
    expect(['ok', 'generator saturated'], output).toContain(row?.verdict)
    expect(row).toMatchObject({ gapCount: 0, duplicateCount: 0, reorderedCount: 0, missingCount: 0 })
    for (const summary of [row?.latencyMs, row?.connectMs, row?.answerMs] as (ResultRow['latencyMs'] | undefined)[]) {
      expect(summary?.p50).toBeGreaterThan(0)
      expect(summary?.p99).toBeGreaterThanOrEqual(summary?.p50 ?? Number.NaN)
    }
    for (const key of ['serverCpuSeconds', 'brokerCpuSeconds', 'redisCpuSeconds', 'gatewayCpuSeconds']) {
      expect(row?.[key], key).toBeGreaterThanOrEqual(0)
    }
    expect(row?.serverCpuSeconds).toBeGreaterThan(0)
  }

  it('brings every bid to everybody who watches its item, on one node and on two, and compares with Redis', async () => {
    const html = fileNamed('auction.html')
    const csv = fileNamed('auction.csv')
    const load = ['--nodes', '1,2', '--bids', '3', '--warmup', '1', '--interval', '20ms']
    const crowds = ['--items', '5', '--zipf', '1', '--shard', '--compression']
    const conditions = ['--assert', 'missingCount=0', '--assert', 'latencyMs.p99@50,nodes=2 < 60s']
    const { output, record, rows } = await auction(...load, ...crowds, ...conditions, '--html', html, '--csv', csv)
    const mode = '5 items, zipf 1, sharded, compressed'
    expect(rows.map(({ target, nodes }) => [target, nodes])).toEqual([
      ['webmq-native+nats', 1],
      ['webmq-native+nats', 2],
    ])
    const crowd = [22, 11, 7, 6, 4]
    const bids = crowd.flatMap((count, group) => [2, 3, 4].map((seq) => ({ group, seq, count })))
    for (const row of rows) {
      expectEverything(row, output)
      expect(row).toMatchObject({ mode, crowd, bids })
      // The warm-up is compared with Redis too.
      expect(row.reconciliation).toMatchObject({ acceptedCount: 5 * 4, expectedCount: 4 * 50, unknownCount: 0 })
      expect(row.generatorShare).toBeGreaterThan(0)
      expect(row.largestItemMs).toBeGreaterThan(0)
    }
    expect(output).toContain('published, round 4, 4 nodes')
    expect(output).toContain('446ms (90-100%)')
    expect(output).toContain(`${mode}, 2 nodes`)
    expect(record.assertions.map(({ isMet }) => isMet)).toEqual([true, true])
    expect(await readFile(csv, 'utf8')).toMatch(/^scenario,target,mode,subscribers,nodes/)
    expect(await readFile(html, 'utf8')).toMatch(/^<!doctype html>/i)
  })
})
