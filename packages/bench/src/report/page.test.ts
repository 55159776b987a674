import { Script } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { fixtureRecord } from '../../test/report-fixture.js'
import type { ResultRecord } from '../results/result.js'
import { compareResults } from './compare.js'
import { comparePage } from './compare-page.js'
import type { PageContent, PageSection } from './page.js'
import { recordPage } from './record-page.js'

/** The content that the page shows. */
function contentOf(html: string): PageContent {
  const [, json = ''] = /id="content">(.*)<\/script>/.exec(html) ?? []
  return JSON.parse(json) as PageContent
}

function section(html: string, title: string): PageSection {
  const found = contentOf(html).sections.find((one) => one.title === title)
  if (found === undefined) throw new Error(`there is no section ${title}`)
  return found
}

/** Plots by title, each with the names of its lines. */
function plotsOf(html: string): Map<string, string[]> {
  return new Map(
    (section(html, 'Plots').plots ?? []).map(({ title, series }) => [title, series.map(({ name }) => name)]),
  )
}

const ALL = ['raw', 'webmq-native', 'webmq-uws', 'uws', 'ws', 'socketio']
const TIERS = [10, 100, 500, 1_000, 2_000, 5_000]

describe('the page', () => {
  it('plots throughput and CPU cost against connections first, with a line per target', () => {
    const plots = plotsOf(recordPage(fixtureRecord()))
    const [first = '', second = ''] = [...plots.keys()]
    expect([first, second]).toEqual(['Deliveries/s; more is better', 'Deliveries per CPU second; more is better'])
    expect(plots.get(first)).toEqual(ALL)
    expect(plots.get('Loop lag p99 (ms); less is better')).toEqual(ALL)
    const [plot] = section(recordPage(fixtureRecord()), 'Plots').plots ?? []
    expect(plot).toMatchObject({ x: TIERS, isLogX: true, kind: 'line' })
    expect(plot?.series[1]?.values.every((value) => typeof value === 'number')).toBe(true)
    expect(plot?.series[0]?.isDoubtful).toContain(true)
    expect(plot?.series[1]?.ranges?.[0]).toHaveLength(2)
  })

  it('plots the percentiles of each tier and what happened over time', () => {
    const plots = plotsOf(recordPage(fixtureRecord()))
    for (const tier of TIERS) expect(plots.get(`Latency at ${tier.toLocaleString('en')} connections (ms)`)).toEqual(ALL)
    expect(plots.get('deliveries per second, 5,000 connections')).toEqual(ALL)
  })

  it('begins with the verdict and the main figures, beside those of others', () => {
    const { verdict, figures } = contentOf(recordPage({ ...fixtureRecord(), assertions: [] }))
    expect(verdict).toEqual({
      text: 'generator saturated, 6 of 36 rows',
      small: expect.stringMatching(/its own\. The generator was busy for 97 % of the time\.$/),
      tone: 'doubtful',
    })
    expect(figures[0]).toEqual({
      value: expect.stringMatching(/^\d.*ms$/),
      label: 'latency p99',
      small: expect.stringMatching(/^webmq-native, 5,000 connections; 0\.\d+x that of uws$/),
    })
    expect(figures.map(({ label }) => label).slice(1)).toEqual([
      'deliveries per CPU second',
      'deliveries/s',
      'latency p50',
      'lost or doubled',
    ])
    expect(contentOf(recordPage(fixtureRecord())).verdict).toEqual({
      text: '1 of 2 assertions fails',
      small: 'p99<10ms (12.4)',
      tone: 'bad',
    })
    const quiet = fixtureRecord({ targets: ['uws'], tiers: [100] })
    expect(contentOf(recordPage({ ...quiet, assertions: [] }))).toMatchObject({ verdict: { text: 'ok', tone: 'good' } })
  })

  it('draws a recorded distribution as bars with its percentiles marked, instead of the percentiles alone', () => {
    const bars = { edgesMs: [1, 10, 100], shares: [0.75, 0.25] }
    const distributions = [{ title: 'Latency', bars, marks: [{ label: 'p50', atMs: 4 }] }]
    const html = recordPage({ ...fixtureRecord({ tiers: [10], targets: ['uws'] }), distributions })
    const [plot] = section(html, 'Plots').plots ?? []
    expect(plot).toMatchObject({ title: 'Latency (ms), share of all', kind: 'bars', isLogX: true })
    expect(plot?.x.map((at) => Number(at.toFixed(2)))).toEqual([3.16, 31.62])
    expect(plot?.bands).toEqual([{ label: 'p50 4.00ms', from: 4, to: 4 }])
    expect([...plotsOf(html).keys()]).not.toContain('Latency (ms)')
  })

  it('gives each further nine of a percentile the same room', () => {
    const plots = section(recordPage(fixtureRecord({ tiers: [10] })), 'Plots').plots ?? []
    const latency = plots.find(({ title }) => title === 'Latency (ms)')
    expect(latency?.xTicks?.map(({ label }) => label)).toEqual(['p50', 'p95', 'p99', 'max'])
    expect(latency?.x.map((at) => Number(at.toFixed(2)))).toEqual([0.3, 1.3, 2, 2.7])
  })

  it('plots runs over time with their marked spans', () => {
    const panel = { unit: '', format: 'count' as const, lines: [{ name: 'node 1', values: [1, null, 3] }] }
    const bands = [{ label: 'kill', fromMs: 500, toMs: 1_000 }]
    const timelines = [{ title: 'redis', stepMs: 500, bands, panels: [{ title: 'Connections', ...panel }] }]
    const [plot] = section(recordPage({ ...fixtureRecord(), timelines }), 'Plots').plots ?? []
    expect(plot).toMatchObject({ title: 'Connections, redis', x: [0.5, 1, 1.5], series: panel.lines })
    expect(plot?.bands).toEqual([{ label: 'kill', from: 0.5, to: 1 }])
  })

  it('draws bars for a single tier', () => {
    const [plot] = section(recordPage(fixtureRecord({ tiers: [1_000] })), 'Plots').plots ?? []
    expect(plot).toMatchObject({ kind: 'bars', xNames: ALL })
    expect(plot?.series.map(({ values }) => values.filter((value) => value !== null).length)).toEqual(ALL.map(() => 1))
  })

  it('separates what differs in more than target and tier', () => {
    const record = fixtureRecord({ tiers: [10, 100], targets: ['raw', 'uws'] })
    const rows = ['flood', 'paced'].flatMap((mode) => record.rows.map((row) => ({ ...row, mode })))
    const titles = [...plotsOf(recordPage({ ...record, rows })).keys()]
    expect(titles).toContain('Deliveries/s, flood; more is better')
    expect(titles).toContain('Latency at 10 connections (ms), paced')
  })

  it('refers to nothing outside itself, and loads nothing', () => {
    const html = recordPage(fixtureRecord())
    const markup = html.replaceAll(/<script[^>]*>.*?<\/script>|<style>.*?<\/style>/gs, '')
    expect(markup).not.toMatch(/\b(src|srcset|href|action|on\w+)\s*=|<(link|img|iframe|object|base)\b/i)
    expect(html).not.toMatch(/url\(|@import/i)
    expect(html).toContain("default-src 'none'")
    expect(html).not.toContain('/*uplot')
    // Both parse.
    const scripts = [...html.matchAll(/<script>(.*?)<\/script>/gs)].map(([, script = '']) => script)
    expect(scripts).toHaveLength(2)
    for (const script of scripts) expect(() => new Script(script)).not.toThrow()
  })

  it('says what is needed to make it again', () => {
    const { command, facts = [] } = section(recordPage(fixtureRecord()), 'How it was made')
    expect(command).toBe("node benchmark.js --scenario fanout --tiers 10,100,500 --repeat 5 --assert 'gaps=0'")
    const values = facts.map(({ value }) => value)
    for (const text of ['Example CPU @ 2.50GHz', 'Linux 6.1.0', 'bbr', '20.52.0', '10, 100, 500, 1000, 2000, 5000'])
      expect(values).toContain(text)
  })

  it('shows verdicts with their reasons, assertions, notes and the best target', () => {
    const html = recordPage(fixtureRecord())
    const { text, list = [] } = section(html, 'Outcome')
    expect(text).toBe('36 rows: 6 generator saturated, 30 ok')
    expect(list[0]).toMatchObject({
      text: 'generator saturated: the generator was busy for 97 % of the time',
      small: expect.stringMatching(/^raw, 10 connections; raw, 100 con/),
      tone: 'doubtful',
    })
    expect(list).toContainEqual({ text: 'fails: p99<10ms', small: '12.4', tone: 'bad' })
    expect(list.at(-1)).toMatch(/the length of the queue/)
    const [medians, every] = section(html, 'Table').tables ?? []
    expect([medians?.rows.length, every?.summary]).toEqual([36, 'Every single measurement (180)'])
    expect(medians?.rows[0]).toContainEqual(expect.objectContaining({ tone: 'best' }))
    expect(JSON.stringify(medians)).toContain('±')
  })

  it('keeps a text from becoming markup', () => {
    const evil = `</script><script>alert("&'")</script>`
    const record = fixtureRecord({ tiers: [10], targets: ['raw', 'uws'] })
    const html = recordPage({ ...record, scenario: evil, command: evil, notes: [evil], config: { [evil]: [evil] } })
    expect(html).not.toContain('<script>alert')
    expect(section(html, 'How it was made').command).toBe(evil)
  })

  it('is a page even when nothing was measured', () => {
    const record: ResultRecord = { ...fixtureRecord({ tiers: [10] }), rows: [], runs: [], series: [], assertions: [] }
    expect(recordPage(record)).toMatch(/^<!doctype html>.*<\/html>\n$/s)
  })

  it('compares two results, ratio by ratio', () => {
    const small = { targets: ['raw', 'uws'], tiers: [100] }
    const comparison = compareResults(fixtureRecord(small), fixtureRecord({ ...small, seed: 2, speed: 0.7 }), {
      leastChange: 0.03,
    })
    const [table] = section(comparePage(comparison), 'Ratios').tables ?? []
    expect(table?.rows.map(([name]) => name)).toEqual(['raw', 'uws'])
    expect(table?.rows[1]).toContainEqual({
      text: expect.stringMatching(/^0\.[67]\d*x$/),
      small: expect.stringMatching(/ → .*x to .*x$/),
      tone: 'bad',
    })
  })
})
