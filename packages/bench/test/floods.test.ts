import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { RUN_TIMEOUT_MS, useBench } from './bench-run.js'

const { benchmark, fileNamed } = useBench()

it('floods everyone without a gap, and writes all kinds of files', { timeout: RUN_TIMEOUT_MS }, async () => {
  const csv = fileNamed('fanout.csv')
  const html = fileNamed('fanout.html')
  const load = [
    '--tiers',
    '10',
    '--duration',
    '0.3',
    '--warmup',
    '0.1',
    '--target',
    'raw,webmq-native,webmq-uws,uws,ws',
  ]
  const conditions = ['--assert', 'gapCount=0', '--assert', 'webmq-native/ws deliveriesPerServerCpuSecond > 0.1']
  const { exitCode, output, record } = await benchmark('fanout', ...load, ...conditions, '--csv', csv, '--html', html)
  expect(exitCode, output).toBe(0)
  expect(output).toContain('holds: gapCount=0 (0)')

  const { rows, runs, versions, identity, series, command, assertions } = await record()
  expect(rows.map(({ target }) => target)).toEqual(['raw', 'webmq-native', 'webmq-uws', 'uws', 'ws'])
  for (const row of rows) {
    expect(row).toMatchObject({ mode: 'memory', subscribers: 10, gapCount: 0, duplicateCount: 0, latencyMs: null })
    const { publishedPerSecond, deliveriesPerSecond, bytesPerSecond, serverCpuSeconds, serverRssBytes } = row
    expect(publishedPerSecond).toBeGreaterThan(100)
    expect(Number(deliveriesPerSecond) / Number(publishedPerSecond)).toBeGreaterThan(4)
    expect(bytesPerSecond).toBeCloseTo(Number(deliveriesPerSecond) * 100)
    expect(serverCpuSeconds).toBeGreaterThan(0)
    expect(row.deliveriesPerServerCpuSecond).toBeGreaterThan(1_000)
    expect(serverRssBytes).toBeGreaterThan(1_000_000)
    expect(row.serverEventLoopLagMs === null).toBe(row.target === 'raw')
  }
  expect(runs.map(({ order }) => order)).toEqual([1, 2, 3, 4, 5])
  expect(identity).toEqual(['target', 'mode', 'subscribers'])
  expect(Object.keys(versions)).toHaveLength(5)
  expect(series?.[0]).toMatchObject({ target: 'raw', repeat: 1, title: 'deliveries' })
  expect(assertions).toHaveLength(2)
  expect(command).toContain('--scenario fanout')
  expect(await readFile(csv, 'utf8')).toMatch(/^scenario,target,mode,subscribers/)
  expect(await readFile(html, 'utf8')).toMatch(/^<!doctype html>/i)
})
