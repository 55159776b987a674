import { describe, expect, it } from 'vitest'
import { checkAssertions, type MetricKinds, parseAssertion } from './assertions.js'
import { UsageError } from './exit-codes.js'

const KINDS: MetricKinds = {
  loss: 'ratio',
  p99: 'milliseconds',
  serverCpu: 'seconds',
  serverRss: 'bytes',
  duplicates: 'count',
}

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
    const assertion = parseAssertion(text, KINDS)
    expect(assertion).toMatchObject({ metric, operator })
    expect(assertion.limit).toBeCloseTo(limit, 9)
  })

  it.each([
    ['loss', /form METRIC OPERATOR NUMBER/],
    ['', /form/],
    ['p99<', /form/],
    ['p99<-1', /form/],
    ['<10', /form/],
    ['p99=<10', /form/],
    ['p99<10ms; rm', /form/],
    ['p98<10ms', /no metric 'p98'; there are loss, p99/],
    ['toString<1', /no metric/],
    ['p99<10%', /takes us, ms, s, not '%'/],
    ['duplicates=0ms', /takes no unit/],
    ['serverRss<1constructor', /takes B/],
  ])('refuses %j', (text, message) => {
    expect(() => parseAssertion(text, KINDS)).toThrow(UsageError)
    expect(() => parseAssertion(text, KINDS)).toThrow(message)
  })
})

describe('checking assertions', () => {
  const isMet = (text: string, actual: number | null) => {
    const assertion = parseAssertion(text, KINDS)
    return checkAssertions([assertion], { [assertion.metric]: actual })[0]?.isMet
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
