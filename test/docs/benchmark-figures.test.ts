import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  FIGURES,
  figuresText,
  PAGES,
  placesOf,
  readFigures,
  staleTables,
  withTables,
} from '../../packages/bench/pages/figures.mjs'
import { TABLES } from '../../packages/bench/pages/tables.mjs'
import { planRun } from '../../packages/bench/src/cli.js'
import { ROOT } from './blocks.js'

const tables = readFigures()
const pages = PAGES.map((page) => readFileSync(page, 'utf8'))
const SILENT = { stdout: { write: () => undefined }, stderr: { write: () => undefined } }
const DAY_MS = 86_400_000
const [first = ''] = Object.keys(TABLES)
const COST = 'deliveriesPerServerCpuSecond'
const figures = {
  commands: ['node benchmark.js --scenario fanout'],
  commit: 'abcdef12',
  date: '2026-01-01',
  machine: 'a machine',
  versions: { uws: '1.5.0', 'webmq-native': '0.1.0' },
  repeats: 3,
  seconds: 10,
  columns: [
    { key: 'target', title: 'Target', format: 'text' },
    { key: 'subscribers', title: 'Connections', format: 'count' },
    { key: COST, title: 'Deliveries/CPU s', format: 'rate' },
    { key: 'gapCount', title: 'Gaps', format: 'count' },
  ],
  rows: [
    {
      target: 'webmq-native',
      subscribers: 100,
      [COST]: 55e6,
      gapCount: 0,
      spread: { [COST]: { min: 50e6, max: 60e6 } },
    },
    { target: 'uws', subscribers: 100, [COST]: 10e6, gapCount: 0, spread: {} },
  ],
}
/** Tables that are made of others. */
const MADE = ['aims', 'costs', 'drops', 'ends', 'growth', 'million']
const jitter = {
  ...figures,
  columns: [...figures.columns, { key: 'deliveredRatio', title: 'Delivered', format: 'percent' }],
  rows: [
    { target: 'webmq', subscribers: 200, deliveredRatio: 0.5, gapCount: 1 },
    { target: 'webmq', subscribers: 100, deliveredRatio: 1, gapCount: 0 },
  ],
}
const FAN_OUT = '<!-- figures: fan-out -->\nold\n<!-- /figures -->\n'

describe('the tables of docs/benchmarks.md, docs/scaling.md and docs/comparison.md', () => {
  it('are what their figures say', () => {
    for (const page of pages) expect(withTables(page, tables)).toBe(page)
  })

  it('have a place for each table, and are all made, but for those without figures of ours', () => {
    expect(pages.flatMap(placesOf).toSorted()).toEqual([...Object.keys(TABLES), ...MADE].toSorted())
    const [benchmarks = ''] = pages
    const rest = benchmarks.replaceAll(/<!-- figures: .*?<!-- \/figures -->/gs, '')
    expect(rest.match(/^\| --- .*/gm)).toHaveLength(1)
  })

  it.each(Object.entries(TABLES))('%s is made by commands that the bench takes, of code that exists', (_, table) => {
    for (const { args } of table.runs) {
      const [program = '', ...flags] = args
      expect(existsSync(path.join(ROOT, 'packages/bench', program)), program).toBe(true)
      if (program !== 'benchmark.js') continue
      expect(planRun(flags, SILENT).planned.heading).not.toBe('')
      expect(planRun([...flags, ...table.dry.split(' ')], SILENT).planned.heading).not.toBe('')
    }
    expect(table.measures.filter((code) => !existsSync(path.join(ROOT, code)))).toEqual([])
    expect(table.measures).not.toEqual([])
  })

  it('say commit and date, and have rows', () => {
    for (const [name, one] of tables) {
      expect(Object.keys(TABLES)).toContain(name)
      expect(one).toMatchObject({
        commit: expect.stringMatching(/^[0-9a-f]{7,12}$/),
        date: expect.stringMatching(/^\d{4}-\d\d-\d\d$/),
      })
      expect(one.rows).not.toEqual([])
      expect(readFileSync(path.join(FIGURES, `${name}.json`), 'utf8')).toBe(figuresText(one))
    }
  })

  it('refuse figures that are older than the code they measure allows', () => {
    const changedAfter = (days: number) =>
      staleTables(new Map([[first, figures]]), () => Date.parse(figures.date) + days * DAY_MS)
    expect(changedAfter(21)).toEqual([])
    expect(changedAfter(22)[0]).toBe(
      `${first} was measured 22 days before the last change of packages/native/crates; 21 are allowed`,
    )
  })

  it('show ranges and ratios to peers, whose versions stand below', () => {
    const page = withTables(FAN_OUT, new Map([['fan-out', figures]]))
    expect(page).toContain('| webmq-native | 100 | 55M/s (50 to 60M/s) | 5.5x |')
    expect(page).toContain('| uws | 100 | 10M/s |  |')
    const source = '0 in every row: Gaps. Medians of 3 runs in turns, 2026-01-01, commit abcdef12'
    expect(page).toContain(`${source}; a machine; uws 1.5.0.`)
    expect(withTables(`On a machine.\n${FAN_OUT}`, new Map([['fan-out', figures]]))).toContain(`${source}; uws 1.5.0.`)
    expect(withTables(FAN_OUT, new Map())).toContain('Not measured yet.')
    expect(() => withTables('<!-- figures: none -->\n<!-- /figures -->', tables)).toThrow('there is no table none')
  })

  it('make what was aimed at, and what things cost, from the same figures', () => {
    const aims = withTables('<!-- figures: aims -->\n<!-- /figures -->', new Map([['fan-out', figures]]))
    expect(aims).toContain(
      '| Flood to 100, deliveries per CPU s | ≥ 5x uws, ≥ 0.7x raw, ≤ 0 lost | 5.5x uws, –, 0 lost | – |  |',
    )
    const drops = withTables('<!-- figures: drops -->\n<!-- /figures -->', new Map([['jitter', jitter]]))
    expect(drops).toContain('| WebMQ | 100 | 100.00% | 0 | – | – | – | – | – | – | – |')
    expect(drops).toContain('| Socket.IO | – |')
    const costs = withTables('<!-- figures: costs -->\n<!-- /figures -->', new Map())
    expect(costs).toContain('| a delivery of a flood to 1,000 | – |  | fan-out |')
  })

  it('make what a million connections need from those that were held', () => {
    const row = { subscribers: 250_000, serverCpuShare: 0.2, coresPerMillion: 0.8, bytesPerConnection: 900 }
    const held = { ...figures, rows: [{ ...row, kernelBytesPerSide: 4_000 }] }
    const page = withTables('<!-- figures: million -->\n<!-- /figures -->', new Map([['held', held]]))
    expect(page).toContain('| connections held | 250,000; a million by arithmetic | [1,000,000][c-idle] |')
    expect(page).toContain('| memory of the server | 900B each; a million: 900MB | [11.3 GB, 11.6 kB each][c-idle] |')
    expect(page).toContain('| busy cores | 0.2; a million: 0.8 |')
  })

  it('make what grows with the nodes from fleets of several sizes', () => {
    const row = (nodes: number) => ({ target: 'webmq-native+redis', nodes, restNodeMs: 1 + nodes, loggedNodeUs: 5 })
    const sizes = { ...figures, rows: [8, 16, 32].map((nodes) => ({ ...row(nodes), brokerConnections: 2 * nodes })) }
    const page = withTables('<!-- figures: growth -->\n<!-- /figures -->', new Map([['a-fleet-by-its-size', sizes]]))
    expect(page).toContain('| of N nodes | redis |')
    expect(page).toContain('| a node at rest, ms of CPU per second | 1 N |')
    expect(page).toContain('| a logged message: each other node, µs | 5 |')
    expect(page).toContain('| connections of the broker | 2 N |')
    expect(page).toContain('| the broker at rest, ms of CPU per second and node | – |')
    const ends = withTables('<!-- figures: ends -->\n<!-- /figures -->', new Map([['a-fleet-by-its-size', sizes]]))
    expect(ends).toMatch(/\| redis \| – \/ – \/ – \| – \/ – \/ – \| 1\.1\d?% \/ 10\.1\d?% \/ 20\.1\d?% \|/)
  })
})
