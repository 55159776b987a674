import { describe, expect, it } from 'vitest'
import { UsageError } from '../exit-codes.js'
import type { ResultColumn, ResultRow } from '../results/result.js'
import { checkRowAssertions, parseRowAssertion } from './row-assertions.js'

const COLUMNS: readonly ResultColumn[] = [
  { key: 'target', title: 'Target', unit: '', format: 'text' },
  { key: 'mode', title: 'Mode', unit: '', format: 'text' },
  { key: 'subscribers', title: 'Connections', unit: '', format: 'count' },
  { key: 'ratePerSecond', title: 'Offered', unit: '1/s', format: 'rate' },
  { key: 'deliveriesPerSecond', title: 'Deliveries/s', unit: '1/s', format: 'rate' },
  { key: 'latencyMs.p99', title: 'p99', unit: 'ms', format: 'ms' },
  { key: 'gapCount', title: 'Gaps', unit: '', format: 'count' },
  { key: 'serverRssBytes', title: 'RSS', unit: 'B', format: 'bytes' },
  { key: 'verdict', title: 'Verdict', unit: '', format: 'text' },
]
const IDENTITY = ['target', 'mode', 'subscribers', 'ratePerSecond']
const TARGETS = ['webmq-native', 'webmq-native:2', 'uws']

/** Twelve rows: deliveries are 100 times the connections, of ours six times as much; the p99 of ours is 10 ms. */
const ROWS = TARGETS.flatMap((target) =>
  [10, 1_000].flatMap((subscribers) =>
    [100, 1_000].map((ratePerSecond) => {
      const isOurs = target.startsWith('webmq')
      return {
        target,
        mode: 'single',
        subscribers,
        ratePerSecond,
        deliveriesPerSecond: subscribers * 100 * (isOurs ? 6 : 1),
        latencyMs: { p50: 1, p95: 2, p99: isOurs ? 10 : 30, max: 40 },
        gapCount: target === 'uws' && subscribers === 1_000 ? 5 : 0,
        serverRssBytes: 100_000_000,
        verdict: target === 'uws' ? 'generator saturated' : 'ok',
      }
    }),
  ),
) as unknown as readonly ResultRow[]

function check(text: string) {
  const [result] = checkRowAssertions([parseRowAssertion(text, COLUMNS, TARGETS)], ROWS, IDENTITY)
  return result
}

describe('a condition over rows', () => {
  it.each([
    ['gapCount=0', false, 5],
    ['webmq-native gapCount=0', true, 0],
    ['webmq-native:2 gapCount == 0', true, 0],
    ['gapCount@10=0', true, 0],
    ['gapCount@1000,ratePerSecond=100 <= 5', true, 5],
    ['latencyMs.p99<25ms', false, 30],
    ['webmq-native latencyMs.p99 < 0.025s', true, 10],
    ['deliveriesPerSecond@10 >= 1000', true, 1_000],
    ['webmq-native/uws deliveriesPerSecond@1000 >= 5', true, 6],
    ['webmq-native/uws deliveriesPerSecond >= 6.5', false, 6],
    ['webmq-native / uws latencyMs.p99 <= 0.4', true, 1 / 3],
    ['serverRssBytes<=0.1GB', true, 100_000_000],
    ['verdict = ok', false, 'generator saturated'],
    ['webmq-native verdict=ok', true, 'ok'],
    ['verdict != failed', true, 'ok'],
    ['verdict@target=uws = generator saturated', true, 'generator saturated'],
  ])('%s: %s', (text, isMet, actual) => {
    expect(check(text)).toEqual({ text, isMet, actual })
  })

  it('does not hold when no row is meant', () => {
    expect(check('gapCount@77=0')).toMatchObject({ isMet: false, actual: null })
  })

  it('does not hold for what was not measured', () => {
    const rows = ROWS.map((row) => ({ ...row, latencyMs: null }))
    const [result] = checkRowAssertions([parseRowAssertion('latencyMs.p99<25', COLUMNS, TARGETS)], rows, IDENTITY)
    expect(result).toMatchObject({ isMet: false, actual: null })
  })

  it.each([
    ['gapCount', /not of the form/],
    ['', /not of the form/],
    ['gapCount=', /not of the form/],
    ['gapCount=none', /'none' is not a number/],
    ['gapCount<-1', /'-1' is not a number/],
    ['p99<25', /no column 'p99'; there are target/],
    ['raw gapCount=0', /'raw' is not measured; webmq-native/],
    ['webmq-native/ws gapCount=0', /'ws' is not measured/],
    ['gapCount@payload=5 = 0', /no column 'payload'/],
    ['gapCount=0ms', /'gapCount' takes no unit, not 'ms'/],
    ['latencyMs.p99<25MB', /takes us, ms, s, not 'MB'/],
    ['webmq-native/uws latencyMs.p99<2ms', /a ratio takes no unit/],
    ['verdict>ok', /is text/],
    ['webmq-native/uws verdict=ok', /is text/],
  ])('is refused: %j', (text, message) => {
    expect(() => parseRowAssertion(text, COLUMNS, TARGETS)).toThrow(UsageError)
    expect(() => parseRowAssertion(text, COLUMNS, TARGETS)).toThrow(message)
  })
})
