import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isKey, isMessageId } from 'webmq-client/protocol'
import { assertMessageId } from '../ports/message-id.js'
import { brokerMessageId, clientOwner, type MessageOwner } from './draft.js'

const userId = fc.string({ unit: 'binary', minLength: 1, maxLength: 60 }).filter((text) => !/\p{Surrogate}/u.test(text))
const owner: fc.Arbitrary<MessageOwner> = fc.oneof(
  fc.constantFrom<MessageOwner>('server', 'anonymous'),
  fc.oneof(userId, fc.constantFrom('server', 'anonymous', 'user server', 'k m server')).map(clientOwner),
)
const key = fc.oneof(fc.constantFrom('k', 'k.m'), fc.string({ unit: 'grapheme', maxLength: 20 }).filter(isKey))
const messageId = fc.oneof(fc.constantFrom('m', 'server'), fc.stringMatching(/^[\w-]{1,64}$/).filter(isMessageId))
const named = fc.tuple(owner, key, messageId)

describe('the id that brokers get', () => {
  it('has one form, whatever the owner, the key and the id', () => {
    fc.assert(fc.property(named, (parts) => assertMessageId(brokerMessageId(...parts))))
  })

  it('is the same for the same owner, key and id, and another one for any other', () => {
    fc.assert(
      fc.property(named, named, (one, other) => {
        const isSame = JSON.stringify(one) === JSON.stringify(other)
        expect(brokerMessageId(...one) === brokerMessageId(...other)).toBe(isSame)
      }),
    )
  })

  it('is the same on a Node.js without the one-shot hash', () => {
    const hashed = createHash('sha256').update('k m user ada').digest('base64url')
    expect(brokerMessageId(clientOwner('ada'), 'k', 'm')).toBe(hashed.slice(0, 22))
  })
})
