import { describe, expect, it } from 'vitest'
import { fixtureRecord } from '../../test/report-fixture.js'
import type { ResultTimeline, TimelinePanel } from '../results/result.js'
import { svgText } from './svg.js'

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

describe('the picture', () => {
  it('shows what a delivery costs: a bar per target and tier', () => {
    const svg = svgText(fixtureRecord({ tiers: [1_000], targets: ['raw', 'webmq-native', 'uws'] }))
    const names = [...svg.matchAll(/class="bar[^"]*" data-series="([^"]*)"/g)].map(([, name]) => name)
    expect(names).toEqual(['raw', 'webmq-native', 'uws'])
    expect(svg).toContain('Deliveries per CPU second')
    expect(svg).toContain('class="spread"')
    expect(svgText(fixtureRecord({ targets: ['raw', 'uws'] }))).toContain('data-series="uws, 100 connections"')
  })

  it('shows every panel of a run over the same seconds, with marked spans and holes', () => {
    const svg = svgText({ ...fixtureRecord(), timelines: [TIMELINE] })
    for (const text of ['Connections: node 1, node 2', 'Latency p99 (ms)', '5 seconds', 'kill', '&lt;cut&gt;'])
      expect(svg).toContain(`>${text}<`)
    const paths = [...svg.matchAll(/data-series="([^"]+)" d="([^"]+)"/g)].map(([, name, path]) => ({ name, path }))
    expect(paths.map(({ name }) => name)).toEqual(['node 1', 'node 2', 'p99'])
    expect(new Set(paths.map(({ path }) => /L([\d.]+) [\d.]+$/.exec(path ?? '')?.[1]))).toEqual(new Set(['696']))
    expect(paths[0]?.path?.match(/M/g)).toHaveLength(2)
    expect(svg.match(/class="band"/g)).toHaveLength(2)
    const empty = { ...TIMELINE, bands: [], panels: [{ ...PANEL, lines: [{ name: 'none', values: [] }] }] }
    expect(svgText({ ...fixtureRecord(), timelines: [empty] })).not.toMatch(/NaN|Infinity|undefined/)
  })

  it('shows curves of measured points beside what they are held against', () => {
    const points = [0, 0.5, 1, 2].map((x) => ({ x, y: Math.min(1, x) }))
    const lines = [
      { name: 'ideal', isReference: true, points },
      { name: 'acknowledged', isReference: false, points: points.slice(1) },
    ]
    const curve = (title: string) => ({ title, x: 'Offered', y: 'Acknowledged', lines })
    const svg = svgText({ ...fixtureRecord(), timelines: [TIMELINE], curves: [curve('a'), curve('<b>')] })
    for (const text of ['a', '&lt;b&gt;', '50%', '1.5x']) expect(svg).toContain(`>${text}<`)
    expect(svg.match(/data-series="ideal"/g)).toHaveLength(2)
    expect(svg.match(/<circle/g)).toHaveLength(6)
    // The capacity is the top of the picture, and twice as much its right end.
    expect(svg).toContain('d="M64 254L216 144L368 34L672 34"')
    const empty = { ...curve('none'), lines: [{ name: 'acknowledged', isReference: false, points: [] }] }
    expect(svgText({ ...fixtureRecord(), curves: [empty] })).not.toMatch(/NaN|Infinity|undefined/)
  })

  it('refers to nothing outside itself, and says how it was made', () => {
    const record = fixtureRecord({ tiers: [1_000] })
    const svg = svgText({ ...record, command: 'node benchmark.js --name "<&>"' })
    expect(svg).not.toMatch(/<(script|image|foreignObject|use)\b/i)
    expect(svg.replace('xmlns="http://www.w3.org/2000/svg"', '')).not.toMatch(/https?:|url\(|@import/i)
    expect(svg).toContain('<desc>node benchmark.js --name &quot;&lt;&amp;&gt;&quot;</desc>')
  })

  it('is an error when there is nothing to plot', () => {
    expect(() => svgText({ ...fixtureRecord(), rows: [] })).toThrow('nothing to plot')
  })
})
