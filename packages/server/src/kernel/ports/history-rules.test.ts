import { describe, expect, it } from 'vitest'
import { type HistoryRules, historyRulesOf, parseHistoryRule } from './history-rules.js'

function rulesOf(...texts: readonly string[]): HistoryRules {
  return historyRulesOf({ history: texts, historyMaxMessages: 10 }, false)
}

describe('parseHistoryRule', () => {
  it.each([
    ['chat.#=100,10m', { pattern: 'chat.#', maxMessages: 100, maxAgeMs: 600_000 }],
    ['a=b.*=5,250ms', { pattern: 'a=b.*', maxMessages: 5, maxAgeMs: 250 }],
    [' #=1 ', { pattern: '#', maxMessages: 1, maxAgeMs: undefined }],
    ['k=7,2d', { pattern: 'k', maxMessages: 7, maxAgeMs: 172_800_000 }],
  ])('reads %s', (text, rule) => {
    expect(parseHistoryRule(text)).toEqual(rule)
  })

  it.each([
    '',
    'chat.#',
    'chat.#=',
    '=5',
    'chat.#=0',
    'chat.#=5,',
    'chat.#=5,0s',
    'chat.#=5,10',
    'a*=5',
    'k=-1',
    'k=1,400d',
  ])('refuses %j', (text) => {
    expect(parseHistoryRule(text)).toBeUndefined()
  })
})

describe('HistoryRules', () => {
  it('gives a key the first rule that matches', () => {
    const rules = rulesOf('chat.vip.#=1000', 'chat.#=100,10m', 'news=5')
    expect(rules.ruleOf('chat.vip.1')?.maxMessages).toBe(1_000)
    expect(rules.ruleOf('chat.1')?.maxMessages).toBe(100)
    expect(rules.ruleOf('news')?.maxMessages).toBe(5)
    for (const _ of [1, 2]) expect(rules.ruleOf('news.today')).toBeUndefined()
  })

  it('covers a pattern when one rule matches all its keys', () => {
    const rules = rulesOf('chat.#=100', 'news.*=5')
    const covered = ['chat.1', 'chat.*.x', 'chat.#', 'news.*']
    const uncovered = ['#', 'news.#', '*.1', 'other', 'news']
    expect(covered.filter((pattern) => rules.covers(pattern))).toEqual(covered)
    expect(uncovered.filter((pattern) => rules.covers(pattern))).toEqual([])
  })

  it('never logs what is internal', () => {
    expect(rulesOf('#=5').ruleOf('$presence')).toBeUndefined()
    expect(rulesOf('*=5', 'a.#=1').ruleOf('$presence')).toBeUndefined()
  })

  it('knows the age after which nothing is given', () => {
    expect(rulesOf('a=1,5s', 'b=1,10s').maxAgeMs).toBe(10_000)
    expect(rulesOf('a=1,5s', 'b=1')).toMatchObject({ maxAgeMs: undefined, hasAges: true })
    expect(rulesOf('b=1').hasAges).toBe(false)
  })

  it('without rules, logs all with an embedded broker and nothing with others', () => {
    const options = { history: [], historyMaxMessages: 10 }
    expect(historyRulesOf(options, true).ruleOf('any.key')).toEqual({
      pattern: '#',
      maxMessages: 10,
      maxAgeMs: undefined,
    })
    expect(historyRulesOf(options, false).isEmpty).toBe(true)
  })
})
