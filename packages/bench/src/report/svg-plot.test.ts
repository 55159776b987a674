import { describe, expect, it } from 'vitest'
import { formatCompact } from './format.js'
import { barPlotSvg } from './svg-bars.js'
import { linePlotSvg, type PlotSeries } from './svg-plot.js'
import { createScale, createTierScale } from './svg-scale.js'

function plot(series: readonly PlotSeries[], hasMarkers = true): string {
  return linePlotSvg({
    title: 'deliveries against subscribers',
    x: { label: 'subscribers', scale: createTierScale('log', [10, 100, 1_000]), format: formatCompact },
    y: { label: 'deliveries/s', scale: createScale('log', [1e5, 1e7]), format: formatCompact },
    series,
    hasMarkers,
  })
}

const linesOf = (svg: string) => [...svg.matchAll(/class="line" data-series="([^"]*)" d="([^"]*)"/g)]

describe('a line plot', () => {
  it('draws one path per series through all its points, from left to right', () => {
    const svg = plot([
      {
        name: 'raw',
        look: 0,
        points: [
          { x: 1_000, y: 1e7 },
          { x: 10, y: 1e5 },
          { x: 100, y: 1e6 },
        ],
      },
      { name: 'uws', look: 1, points: [{ x: 10, y: 2e5 }] },
    ])
    expect(linesOf(svg).map(([, name, path]) => [name, path])).toEqual([
      ['raw', 'M64 198L221 104L378 10'],
      ['uws', 'M64 169.7'],
    ])
    expect(svg).toContain('<title>raw, subscribers 1k: 10M deliveries/s</title>')
  })

  it('breaks the line where nothing was measured or the axis has no place', () => {
    const points = [
      { x: 10, y: null },
      { x: 100, y: 0 },
      { x: 1_000, y: 1e6 },
    ]
    expect(linesOf(plot([{ name: 'raw', look: 0, points }]))[0]?.[2]).toBe('M378 104')
  })

  it('shows the spread of the repetitions, and none where they agree', () => {
    const point = { x: 10, y: 1e6, low: 5e5, high: 2e6 }
    expect(plot([{ name: 'raw', look: 0, points: [point] }])).toContain('class="spread"')
    expect(plot([{ name: 'raw', look: 0, points: [{ ...point, low: 1e6, high: 1e6 }] }])).not.toContain('spread')
  })

  it('marks no points where there are too many', () => {
    expect(plot([{ name: 'raw', look: 0, points: [{ x: 10, y: 1e6 }] }], false)).not.toContain('class="mark"')
  })

  it('escapes names', () => {
    const svg = plot([{ name: '<script>"&\'', look: 0, points: [{ x: 10, y: 1e6 }] }])
    expect(svg).not.toContain('<script>')
    expect(svg).toContain('data-series="&lt;script&gt;&quot;&amp;&#39;"')
  })
})

describe('a bar plot', () => {
  it('draws bars in proportion and says what has no value', () => {
    const svg = barPlotSvg({
      title: 'memory',
      label: 'bytes per connection',
      format: formatCompact,
      bars: [
        { name: 'ws', look: 0, value: 6_800 },
        { name: 'uws', look: 1, value: 1_700 },
        { name: '<raw>', look: 2, value: null },
      ],
    })
    expect(
      [...svg.matchAll(/class="bar" data-series="([^"]*)" d="M110 \d+h([\d.]+)/g)].map(([, ...rest]) => rest),
    ).toEqual([
      ['ws', '220'],
      ['uws', '55'],
      ['&lt;raw&gt;', '0'],
    ])
    expect(svg).toMatch(/class="value"[^>]*>–</)
  })
})
