import { describe, expect, it } from 'vitest'
import { formatPosition, isAfter, parsePosition } from './position.js'

describe('formatPosition', () => {
  it('writes what parsePosition reads, whatever was written before', () => {
    const offsets = [0, 35, 36, 1_295, 1_296, 1_297, 46_655, 46_656, 1_296, 2 ** 31, Number.MAX_SAFE_INTEGER, 7]
    for (const offset of offsets) {
      for (const epoch of ['e', 'a:b', 'e']) {
        expect(formatPosition({ epoch, offset })).toBe(`${epoch}:${offset.toString(36)}`)
        expect(parsePosition(formatPosition({ epoch, offset }))).toEqual({ epoch, offset })
      }
    }
  })
})

describe('parsePosition', () => {
  it.each(['', 'no-offset', ':7', 'epoch:', 'epoch:X', 'epoch:-1', 'epoch:01', 'epoch:2gosa7pa2gw', 'epoch:1.5'])(
    'refuses %j, which is no position',
    (text) => {
      expect(() => parsePosition(text)).toThrow(expect.objectContaining({ code: 'E_POSITION_INVALID' }))
    },
  )
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
