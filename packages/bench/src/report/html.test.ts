import { describe, expect, it } from 'vitest'
import { fixtureRecord } from '../../test/report-fixture.js'
import type { ResultRecord } from '../results/result.js'
import { htmlText } from './html.js'

/** Figures by caption, each with the names of its lines or bars. */
function figuresOf(html: string): Map<string, string[]> {
  const figures = [...html.matchAll(/<figure><figcaption>([^<]*).*?<\/figcaption>(.*?)<\/figure>/gs)]
  return new Map(
    figures.map(([, caption = '', svg = '']) => [
      caption.trim(),
      [...svg.matchAll(/data-series="([^"]*)" d="M/g)].map(([, name = '']) => name),
    ]),
  )
}

const ALL = ['raw', 'webmq-native', 'webmq-uws', 'uws', 'ws', 'socketio']

describe('the HTML file', () => {
  it('plots throughput and CPU cost against subscribers first, with a line per target', () => {
    const figures = figuresOf(htmlText(fixtureRecord()))
    expect([...figures.keys()].slice(0, 2)).toEqual(['Deliveries/s', 'Deliveries per CPU second'])
    expect(figures.get('Deliveries/s')).toEqual(ALL)
    expect(figures.get('Deliveries per CPU second')).toEqual(ALL)
    expect(figures.get('Loop lag p99 (ms)')).toEqual(ALL.filter((name) => name !== 'raw'))
  })

  it('plots the percentiles of each tier and what happened over time', () => {
    const figures = figuresOf(htmlText(fixtureRecord()))
    for (const tier of ['10', '100', '500', '1,000', '2,000', '5,000']) {
      expect(figures.get(`Latency at ${tier} connections (ms)`)).toEqual(ALL)
    }
    expect(figures.get('Deliveries per second, 5,000 connections')).toEqual(ALL)
  })

  it('draws bars for a single tier', () => {
    const html = htmlText(fixtureRecord({ tiers: [1_000] }))
    expect(html).toContain('class="bar')
    expect(figuresOf(html).get('Server RSS')).toEqual(ALL)
    expect([...figuresOf(html).keys()]).toContain('Latency (ms)')
  })

  it('separates what differs in more than target and tier', () => {
    const record = fixtureRecord({ tiers: [10, 100], targets: ['raw', 'uws'] })
    const rows = ['flood', 'paced'].flatMap((mode) => record.rows.map((row) => ({ ...row, mode })))
    const html = htmlText({ ...record, rows })
    expect(html).toContain('<h3>flood</h3>')
    expect(html).toContain('<h3>Percentiles, paced</h3>')
  })

  it('refers to nothing outside itself and runs nothing', () => {
    const html = htmlText(fixtureRecord())
    expect(html).not.toMatch(/<(script|link|img|iframe|object|base)\b/i)
    expect(html).not.toMatch(/\b(src|srcset|action|on\w+)\s*=/i)
    expect(html).not.toMatch(/url\(|@import|https?:/i)
    for (const [, target] of html.matchAll(/href="([^"]*)"/g)) expect(target).toMatch(/^#\w+$/)
    expect(html).toContain("default-src 'none'")
  })

  it('says what is needed to make it again', () => {
    const html = htmlText(fixtureRecord())
    for (const text of [
      'node benchmark.js --scenario fanout --tiers 10,100,500 --repeat 5 --assert &#39;gaps=0&#39;',
      'Example CPU @ 2.50GHz',
      'Linux 6.1.0',
      'bbr',
      '0123456789abcdef0123456789abcdef01234567',
      '20.52.0',
    ]) {
      expect(html).toContain(text)
    }
  })

  it('shows verdicts with their reasons, assertions and notes', () => {
    const html = htmlText(fixtureRecord())
    expect(html).toMatch(/6 generator saturated.*30 ok/)
    expect(html).toMatch(/the generator was busy for 97 % of the time <small>\(raw, 10 connections; raw, 100 con/)
    expect(html).toMatch(/fails<\/b> p99&lt;10ms <small>\(12.4\)/)
    expect(html).toContain('the length of the queue')
  })

  it('escapes whatever a text holds', () => {
    const evil = `<script>alert("&'")</script>`
    const record = fixtureRecord({ tiers: [10], targets: ['raw', 'uws'] })
    const html = htmlText({
      ...record,
      scenario: evil,
      command: evil,
      notes: [evil],
      versions: { [evil]: evil },
      config: { [evil]: evil, list: [evil], nested: { [evil]: evil } },
      assertions: [{ text: evil, isMet: false, actual: null }],
      machine: { ...record.machine, cpuModel: evil, kernel: evil, startedAt: evil },
      columns: record.columns.map((column) => ({ ...column, title: evil })),
      rows: record.rows.map((row) => ({ ...row, target: evil, mode: evil, verdictReason: evil })),
      series: (record.series ?? []).map((series) => ({ ...series, target: evil, title: evil })),
    })
    expect(html).not.toContain('<script')
    expect(html.match(/&lt;script&gt;alert\(&quot;&amp;&#39;&quot;\)/g)?.length).toBeGreaterThan(15)
  })

  it('is a page even when nothing was measured', () => {
    const record: ResultRecord = { ...fixtureRecord({ tiers: [10] }), rows: [], runs: [], series: [], assertions: [] }
    expect(htmlText(record)).toMatch(/^<!doctype html>.*<\/html>\n$/s)
  })

  it('has tags that match', () => {
    const html = htmlText(fixtureRecord()).replace(/^<!doctype html>|<meta [^>]*>/gm, '')
    const open: string[] = []
    for (const [, slash, name = '', end] of html.matchAll(/<(\/?)([a-z][a-z0-9]*)\b[^>]*?(\/?)>/gi)) {
      if (end === '/') continue
      if (slash === '') open.push(name)
      else expect(open.pop()).toBe(name)
    }
    expect(open).toEqual([])
  })
})
