import { describe, expect, it } from 'vitest'
import { LogLife } from './log-life.js'

const [A, B, C, D] = ['a', 'b', 'c', 'd'].map((char) => char.repeat(16)) as [string, string, string, string]
const mark = { nonce: 'n', timeMs: 1 }

describe('the epoch of a log', () => {
  it('is the first candidate of a log that is seen from its beginning, whatever messages name', () => {
    const life = new LogLife(0)
    // A node that has not noticed yet that its log is gone.
    life.named(A)
    expect(life.epoch).toBeUndefined()
    life.marked({ ...mark, candidate: B }, 1)
    expect([life.epoch, life.isKnown, life.sinceOffset]).toEqual([B, true, 0])
    life.marked({ ...mark, candidate: C }, 2)
    life.named(A)
    life.marked({ ...mark, epoch: A }, 4)
    expect(life.epoch).toBe(B)
  })

  it('is what is named first in a log whose beginning is gone, and not a candidate before that', () => {
    const life = new LogLife(100)
    life.marked({ ...mark, candidate: C }, 100)
    expect([life.epoch, life.isKnown]).toEqual([C, false])
    life.named(A)
    expect([life.epoch, life.isKnown]).toEqual([A, true])
    life.named(B)
    expect([life.epoch, life.sinceOffset]).toEqual([A, 100])
  })

  it('is the first candidate where nothing names it', () => {
    const life = new LogLife(100)
    life.marked({ ...mark, candidate: C }, 105)
    life.marked({ ...mark, candidate: D }, 106)
    expect([life.epoch, life.isKnown, life.sinceOffset]).toEqual([C, false, 100])
  })

  it('changes where it is denied, once, and for all alike', () => {
    const follower = new LogLife(500, A)
    const reader = new LogLife(0)
    reader.marked({ ...mark, candidate: A }, 0)
    for (const life of [follower, reader]) {
      life.marked({ ...mark, candidate: B, denies: C }, 600)
      expect(life.epoch).toBe(A)
      life.marked({ ...mark, candidate: C, denies: A }, 601)
      life.marked({ ...mark, candidate: D, denies: A }, 602)
      life.named(A)
      expect([life.epoch, life.isKnown, life.sinceOffset]).toEqual([C, true, 601])
    }
  })

  it('is not the one that was denied, where a reader begins behind the denial of another', () => {
    const life = new LogLife(100)
    life.marked({ ...mark, candidate: B, denies: A }, 100)
    // From a node that has not read that far.
    life.named(A)
    expect(life.isKnown).toBe(false)
    life.named(B)
    expect([life.epoch, life.isKnown]).toEqual([B, true])
  })
})
