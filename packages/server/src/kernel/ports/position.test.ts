import { describe, expect, it } from 'vitest'
import { formatFingerprint } from 'webmq-client/protocol'
import { formatPosition, isAfter, parsePosition } from './position.js'

describe('formatPosition', () => {
  it('writes what parsePosition reads, whatever was written before', () => {
    const offsets = [0, 35, 36, 1_295, 1_296, 1_297, 46_655, 46_656, 1_296, 2 ** 31, Number.MAX_SAFE_INTEGER, 7]
    for (const offset of offsets) {
      for (const epoch of ['e', 'a:b', 'e']) {
        for (const fingerprint of [0, 1, 2 ** 12, 2 ** 24 - 1, 2 ** 29 + 12_345, 2 ** 30 - 1]) {
          const position = { epoch, offset, fingerprint }
          const text = `${epoch}:${offset.toString(36)}.${formatFingerprint(fingerprint)}`
          expect(formatPosition(position)).toBe(text)
          expect(parsePosition(text)).toEqual(position)
        }
      }
    }
  })
})

describe('parsePosition', () => {
  it.each([
    '',
    'no-offset',
    ':7',
    'epoch:',
    'epoch:X',
    'epoch:-1',
    'epoch:01',
    'epoch:2gosa7pa2gw',
    'epoch:1.5',
    'epoch:1.',
    'epoch:1.abcdef',
  ])('refuses %j, which is no position', (text) => {
    expect(() => parsePosition(text)).toThrow(expect.objectContaining({ code: 'E_POSITION_INVALID' }))
  })

  it('knows no fingerprint of positions of earlier servers', () => {
    expect(parsePosition('e:5')).toEqual({ epoch: 'e', offset: 5, fingerprint: 0 })
    expect(parsePosition('0.e:5,1.f:3').fingerprint).toBe(0)
  })
})

describe('isAfter', () => {
  it.each([
    ['e:a', 'e:9', true],
    ['e:9', 'e:a', false],
    ['e:9', 'e:9', false],
    ['f:1', 'e:9', true],
  ])('%s after %s: %s', (position, place, expected) => {
    expect(isAfter(parsePosition(position), parsePosition(place))).toBe(expected)
  })
})
