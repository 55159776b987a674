import { describe, expect, it } from 'vitest'
import { caseTitle, planTrials } from './trial-plan.js'

const CASES = [10, 100].map((subscribers) => ({ mode: 'single', subscribers, fields: {} }))

describe('the plan of a run', () => {
  it('measures all targets in turn before it repeats, and every repeat before the next tier', () => {
    const plan = planTrials(CASES, 2, ['a', 'b', 'c'])
    expect(plan.map(({ testCase, repeat, target }) => `${testCase.subscribers} ${repeat} ${target}`)).toEqual([
      '10 1 a',
      '10 1 b',
      '10 1 c',
      '10 2 b',
      '10 2 c',
      '10 2 a',
      '100 1 b',
      '100 1 c',
      '100 1 a',
      '100 2 c',
      '100 2 a',
      '100 2 b',
    ])
  })

  it('takes modes in turn as it does targets, each only where it is measured', () => {
    const cases = [10, 100].flatMap((subscribers) =>
      ['memory', 'redis'].map((mode) => ({ mode, subscribers, fields: {} })),
    )
    const plan = planTrials(cases, 2, ['a', 'b'], ({ mode }, target) => mode === 'memory' || target === 'a')
    expect(
      plan.map(({ testCase, repeat, target }) => `${testCase.subscribers} ${repeat} ${testCase.mode} ${target}`),
    ).toEqual([
      '10 1 memory a',
      '10 1 memory b',
      '10 1 redis a',
      '10 2 memory b',
      '10 2 redis a',
      '10 2 memory a',
      '100 1 memory b',
      '100 1 redis a',
      '100 1 memory a',
      '100 2 redis a',
      '100 2 memory a',
      '100 2 memory b',
    ])
  })

  it('gives every target every place about equally often', () => {
    const plan = planTrials(CASES.slice(0, 1), 6, ['a', 'b', 'c'])
    const firsts = plan.filter((_, index) => index % 3 === 0).map(({ target }) => target)
    expect(firsts.toSorted()).toEqual(['a', 'a', 'b', 'b', 'c', 'c'])
  })

  it('names a condition by what tells it from others', () => {
    const testCase = { mode: 'json', subscribers: 1_000, fields: { ratePerSecond: 16_000 } }
    expect(caseTitle(testCase, 1)).toBe('1,000 connections, ratePerSecond 16,000')
    expect(caseTitle({ ...testCase, subscribers: 1 }, 2)).toBe('json, 1 connection, ratePerSecond 16,000')
  })
})
