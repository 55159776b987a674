import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ForeignCopies } from './link.js'

const CHANNEL = Buffer.from('webmq:a.b')

describe('ForeignCopies', () => {
  it('finds each message once, whatever subscriptions bring it, also when all payloads are the same', () => {
    // Redis sends to the channel first, then to globs in an order of its own, which may change.
    const subscriptions = fc
      .tuple(fc.boolean(), fc.shuffledSubarray(['a.*', '*.b', 'a.#', '*'], { minLength: 1 }))
      .map(([isExact, globs]) => ({ exact: isExact ? [undefined] : [], globs }))
    fc.assert(
      fc.property(subscriptions, fc.array(fc.boolean(), { maxLength: 20 }), ({ exact, globs }, orders) => {
        const copies = new ForeignCopies()
        let count = 0
        for (const isReversed of orders)
          for (const glob of [...exact, ...(isReversed ? [...globs].reverse() : globs)])
            if (copies.isFirst({ channel: CHANNEL, payload: Buffer.from('1'), glob })) count++
        expect(count).toBe(orders.length)
      }),
    )
  })

  it('tells messages apart by channel and payload', () => {
    const copies = new ForeignCopies()
    const isFirst = (channel: string, payload: string, glob: string) =>
      copies.isFirst({ channel: Buffer.from(channel), payload: Buffer.from(payload), glob })
    expect(isFirst('a.b', '1', 'a.*')).toBe(true)
    expect(isFirst('a.b', '1', '*.b')).toBe(false)
    expect(isFirst('a.b', '2', 'a.#')).toBe(true)
    expect(isFirst('a.c', '2', '*')).toBe(true)
  })

  it('takes an equal message that a new subscription brings for another one', () => {
    const copies = new ForeignCopies()
    const message = { channel: CHANNEL, payload: Buffer.from('1') }
    expect(copies.isFirst({ ...message, glob: 'a.*' })).toBe(true)
    copies.forget()
    expect(copies.isFirst({ ...message, glob: '*.b' })).toBe(true)
  })
})
