import fc from 'fast-check'
import { expect, it } from 'vitest'
import { formatFingerprint, formatPosition, parsePosition, putFingerprint } from './position.js'

const FINGERPRINT = fc.nat(2 ** 30 - 1)

it('reads what it writes', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[\w:.-]{1,52}$/), fc.maxSafeNat(), FINGERPRINT, (epoch, offset, fingerprint) => {
      const position = { epoch, offset, fingerprint }
      expect(parsePosition(formatPosition(position))).toEqual(position)
    }),
    { numRuns: 1_000 },
  )
})

it('writes bytes as text', () => {
  fc.assert(
    fc.property(FINGERPRINT, (fingerprint) => {
      const bytes = new Uint8Array(8).fill(0x21)
      expect(putFingerprint(bytes, 1, fingerprint)).toBe(7)
      expect(new TextDecoder().decode(bytes)).toBe(`!.${formatFingerprint(fingerprint)}!`)
    }),
  )
})

it.each([
  [0, 'AAAAA'],
  [1, 'AAAAB'],
  [63, 'AAAA_'],
  [2 ** 24, 'BAAAA'],
  [2 ** 30 - 1, '_____'],
])('writes %d as %s', (fingerprint, text) => {
  expect(formatFingerprint(fingerprint)).toBe(text)
})

it('knows no fingerprint of a position of an earlier server', () => {
  expect(parsePosition('a.1:b:5')).toEqual({ epoch: 'a.1:b', offset: 5, fingerprint: 0 })
})

it.each(['', ':7', 'e:', 'e', 'e:X', 'e:01', 'e:1.', 'e:1.abcd', 'e:1.abcdef', 'e:1.ab/de', 'e:1.abcde.'])(
  'reads no position in %j',
  (text) => expect(parsePosition(text)).toBeUndefined(),
)
