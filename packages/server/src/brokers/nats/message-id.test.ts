import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { headerBytesOf, headerValueOf } from './message-id.js'

describe('the header of a message id', () => {
  it('is the id as it is, where that is ASCII without spaces at its ends', () => {
    for (const id of ['a', 'user:7#12', 'user 12', '50%off', '0f8a-~!']) expect(headerValueOf(id)).toBe(id)
  })

  it('is ASCII on one line, and another one for every other id', () => {
    const ids = ['%', '%YQ', ' a', 'a ', 'a\r\nNats-Rollup: all', 'josé', '消息', '消', '\u{1f600}', 'a\u0000']
    const values = ids.map(headerValueOf)
    for (const value of values) expect(value).toMatch(/^[ -~]+$/)
    expect(new Set(values).size).toBe(ids.length)
    const id = fc.string({ unit: 'binary', minLength: 1, maxLength: 60 })
    fc.assert(fc.property(id, id, (one, other) => (headerValueOf(one) === headerValueOf(other)) === (one === other)))
  })

  it('has no more bytes than are reckoned with', () => {
    for (const id of ['a', '消'.repeat(80)])
      expect(`NATS/1.0\r\nNats-Msg-Id: ${headerValueOf(id)}\r\n\r\n`.length).toBeLessThanOrEqual(headerBytesOf(id))
  })
})
