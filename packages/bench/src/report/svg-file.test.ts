import { describe, expect, it } from 'vitest'
import { fixtureRecord } from '../../test/report-fixture.js'
import { svgText } from './svg-file.js'

describe('the picture', () => {
  it('shows what a delivery costs: a bar per target for one tier, a line per target for several', () => {
    const one = svgText(fixtureRecord({ tiers: [1_000], targets: ['raw', 'webmq-native', 'uws'] }))
    expect([...one.matchAll(/class="bar[^"]*" data-series="([^"]*)"/g)].map(([, name]) => name)).toEqual([
      'raw',
      'webmq-native',
      'uws',
    ])
    expect(one).toContain('Deliveries per CPU second')
    expect(svgText(fixtureRecord({ targets: ['raw', 'uws'] }))).toContain('class="line" data-series="raw"')
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
