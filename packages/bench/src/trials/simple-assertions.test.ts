import { describe, expect, it } from 'vitest'
import { UsageError } from '../exit-codes.js'
import { column } from '../results/columns.js'
import { checkRowAssertions, parseRowAssertion } from './row-assertions.js'

/** As in the `clients` scenario, whose result is one row without a target. */
const METRICS = [
  column('loss', 'loss', 'percent'),
  column('p99', 'p99', 'ms'),
  column('serverCpu', 'CPU', 'seconds'),
  column('serverRss', 'RSS', 'bytes'),
  column('duplicates', 'duplicates', 'count'),
]
const parse = (text: string) => parseRowAssertion(text, METRICS, [])

describe('parsing an assertion', () => {
  it.each([
    ['loss=0', 'loss', '=', 0],
    ['loss==0', 'loss', '=', 0],
    ['p99<10ms', 'p99', '<', 10],
    ['p99 <= 10', 'p99', '<=', 10],
    ['p99<500us', 'p99', '<', 0.5],
    ['p99<1.5s', 'p99', '<', 1_500],
    ['serverCpu<2s', 'serverCpu', '<', 2],
    ['loss<0.1%', 'loss', '<', 0.001],
    ['serverRss<200MB', 'serverRss', '<', 200_000_000],
    ['serverRss>1KiB', 'serverRss', '>', 1_024],
    [' duplicates != 3 ', 'duplicates', '!=', 3],
  ])('reads %j', (text, metric, operator, limit) => {
    const assertion = parse(text)
    expect(assertion).toMatchObject({ column: { key: metric }, operator })
    expect(assertion.limit).toBeCloseTo(limit, 9)
  })

  it.each([
    ['loss', /form .*COLUMN.* OPERATOR NUMBER/],
    ['', /form/],
    ['p99<', /form/],
    ['p99<-1', /not a number/],
    ['<10', /form/],
    ['p99=<10', /not a number/],
    ['p99<10ms; rm', /not a number/],
    ['p98<10ms', /no column 'p98'; there are loss, p99/],
    ['toString<1', /no column/],
    ['p99<10%', /takes us, ms, s, not '%'/],
    ['duplicates=0ms', /takes no unit/],
    ['serverRss<1constructor', /takes B/],
  ])('refuses %j', (text, message) => {
    expect(() => parse(text)).toThrow(UsageError)
    expect(() => parse(text)).toThrow(message)
  })
})

describe('checking assertions', () => {
  const isMet = (text: string, actual: number | null) => {
    const assertion = parse(text)
    return checkRowAssertions([assertion], [{ [assertion.column.key]: actual }], [])[0]?.isMet
  }

  it.each([
    ['p99<10', 9.999, true],
    ['p99<10', 10, false],
    ['p99<=10', 10, true],
    ['p99>10', 10, false],
    ['p99>=10', 10, true],
    ['loss=0', 0, true],
    ['loss=0', 0.000_000_1, false],
    ['loss=0', -0.1, false],
    ['duplicates!=0', 0, false],
    ['duplicates!=0', 1, true],
  ])('%s with %d is %s', (text, actual, expected) => {
    expect(isMet(text, actual)).toBe(expected)
  })

  it('does not hold when there was nothing to measure', () => {
    expect(isMet('p99<10', null)).toBe(false)
    expect(isMet('p99!=10', null)).toBe(false)
  })
})
