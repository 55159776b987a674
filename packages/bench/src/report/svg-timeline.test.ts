import { expect, it } from 'vitest'
import type { ResultTimeline, TimelinePanel } from '../results/result.js'
import { timelineSvg } from './svg-timeline.js'

const PANEL: TimelinePanel = {
  title: 'Connections',
  unit: '',
  format: 'count',
  lines: [
    { name: 'node 1', values: [0, 10, null, 5, 5] },
    { name: 'node 2', values: [0, 5, 5, 5, 5] },
  ],
}
const TIMELINE: ResultTimeline = {
  title: 'webmq-native+redis',
  stepMs: 1_000,
  bands: [
    { label: 'kill', fromMs: 1_000, toMs: 2_000 },
    { label: '<cut>', fromMs: 1_200, toMs: 4_000 },
  ],
  panels: [
    PANEL,
    { title: 'Latency p99', unit: 'ms', format: 'ms', lines: [{ name: 'p99', values: [1, 200, 3, 1, 1] }] },
  ],
}

it('draws every panel over the same seconds, with the names of its lines', () => {
  const svg = timelineSvg(TIMELINE)
  for (const text of ['Connections', 'node 1', 'node 2', 'Latency p99 (ms)', 'seconds'])
    expect(svg).toContain(`>${text}<`)
  const paths = [...svg.matchAll(/data-series="([^"]+)" d="([^"]+)"/g)].map(([, name, path]) => ({ name, path }))
  expect(paths.map(({ name }) => name)).toEqual(['node 1', 'node 2', 'p99'])
  const lastXs = paths.map(({ path }) => /L([\d.]+) [\d.]+$/.exec(path ?? '')?.[1])
  // All end with the run, at the right edge.
  expect(new Set(lastXs)).toEqual(new Set(['390']))
})

it('breaks a line where nothing was measured', () => {
  const [, path] = /data-series="node 1" d="([^"]+)"/.exec(timelineSvg(TIMELINE)) ?? []
  expect(path?.match(/M/g)).toHaveLength(2)
})

it('marks spans with bands through all panels, and labels that do not cover each other', () => {
  const svg = timelineSvg(TIMELINE)
  const [, height = ''] = /viewBox="0 0 400 ([\d.]+)"/.exec(svg) ?? []
  const bands = [...svg.matchAll(/<rect class="band" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"/g)]
  expect(bands).toHaveLength(2)
  for (const [, x, y, width, tall] of bands) {
    expect(Number(x) + Number(width)).toBeLessThanOrEqual(400)
    expect(Number(y) + Number(tall)).toBeLessThan(Number(height))
    expect(Number(tall)).toBeGreaterThan(100)
  }
  const labels = ['kill', '&lt;cut&gt;'].map((label) => new RegExp(`y="([\\d.]+)">${label}<`).exec(svg)?.[1])
  expect(new Set(labels).size).toBe(2)
  expect(svg).not.toContain('<cut>')
})

it('draws a run without a fault and without a value', () => {
  const empty = timelineSvg({ ...TIMELINE, bands: [], panels: [{ ...PANEL, lines: [{ name: 'none', values: [] }] }] })
  expect(empty).not.toMatch(/NaN|Infinity|undefined/)
})
