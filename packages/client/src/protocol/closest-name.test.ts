import { describe, expect, it } from 'vitest'
import { closestName, didYouMean } from './closest-name.js'

const NAMES = ['port', 'path', 'host', 'maxPayloadBytes', 'maxOutboxBytes', 'jwt.secret']

describe('closestName', () => {
  it.each([
    ['prot', 'port'],
    ['prt', 'port'],
    ['PORT', 'port'],
    ['maxPayloadByte', 'maxPayloadBytes'],
    ['max_payload_bytes', 'maxPayloadBytes'],
    ['max-outbox-bytes', 'maxOutboxBytes'],
    ['jwtSecret', 'jwt.secret'],
    ['maxBytes', 'maxPayloadBytes'],
  ])('finds what %s meant', (name, meant) => {
    expect(closestName(name, NAMES)).toBe(meant)
  })

  it.each(['', 'x', 'threads', 'completelyDifferent', 'a'.repeat(100_000)])('finds nothing near %.20s', (name) => {
    expect(closestName(name, NAMES)).toBeUndefined()
  })

  it('asks in a sentence, or not at all', () => {
    expect(didYouMean('prot', NAMES)).toBe(', did you mean port?')
    expect(didYouMean('zzzzzz', NAMES)).toBe('')
  })
})
