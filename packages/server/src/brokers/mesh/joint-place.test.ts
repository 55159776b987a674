import { describe, expect, it } from 'vitest'
import { formatPosition, parsePosition } from '../../ports/position.js'
import { formatJointEpoch, parseJointPlace } from './joint-place.js'

const NODE = '0123456789abcdef'
const base = (start: string, offset: number) => ({ epoch: start.padEnd(16, '0'), offset })

describe('a joint place', () => {
  it('is the place alone when nothing else has to be said', () => {
    expect(formatJointEpoch(NODE, [])).toBe(NODE)
    expect(parseJointPlace({ epoch: NODE, offset: 7 })).toEqual({ epoch: NODE, offset: 7, bases: [] })
  })

  it('goes through the text of a position, with three bases', () => {
    const bases = [base('aaaaaa', 59_999_999), base('bbbbbb', 0), base('cccccc', 60_466_175)]
    const epoch = formatJointEpoch(NODE, bases)
    const text = formatPosition({ epoch: epoch ?? '', offset: 12 })
    expect(text).toMatch(/^[\w:.-]{1,52}:[0-9a-z]{1,11}$/)
    expect(parseJointPlace(parsePosition(text))).toEqual({
      epoch: NODE,
      offset: 12,
      bases: bases.map(({ epoch, offset }) => ({ epoch: epoch.slice(0, 6), offset })),
    })
  })

  it('says when there are too many', () => {
    expect(formatJointEpoch(NODE, Array(4).fill(base('a', 1_000_000)))).toBeUndefined()
  })

  it('takes any text', () => {
    expect(parseJointPlace({ epoch: 'x.', offset: 1 })).toEqual({
      epoch: 'x',
      offset: 1,
      bases: [{ epoch: '', offset: 0 }],
    })
  })
})
