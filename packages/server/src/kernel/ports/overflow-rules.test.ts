import { describe, expect, it } from 'vitest'
import { OverflowRules, parseOverflowRule } from './overflow-rules.js'

describe('overflow rules', () => {
  it('are for listens whose keys all match the pattern of the rule, and the first one wins', () => {
    const rules = new OverflowRules(['prices.eur.*=drop-oldest', 'prices.#=latest', 'a=b=latest', '#.log=disconnect'])
    expect(
      ['prices.eur.*', 'prices.eur.x', 'prices.eur.#', 'prices', '#', '*.eur.x', 'a=b', 'x.log', 'other'].map(
        (pattern) => rules.of(pattern),
      ),
    ).toEqual([
      'drop-oldest',
      'drop-oldest',
      'latest',
      'latest',
      'disconnect',
      'disconnect',
      'latest',
      'disconnect',
      'disconnect',
    ])
  })

  it.each(['', 'a', '=latest', 'a=', 'a=newest', 'a=latest-told', 'a b=latest', 'a =latest', 'a=latest '])(
    'are not %j',
    (text) => {
      expect(parseOverflowRule(text)).toBeUndefined()
    },
  )
})
