import { describe, expect, it } from 'vitest'
import { LogEpoch } from './log-epoch.js'

const [A, B, C, D] = ['a', 'b', 'c', 'd'].map((char) => char.repeat(16)) as [string, string, string, string]
const record = { nonce: 'n', timeMs: 1 }

describe('the epoch of a log', () => {
  it('is the first candidate of a log that is seen from its beginning, whatever messages name', () => {
    const epoch = new LogEpoch(0)
    // A node that has not noticed yet that its log is gone.
    epoch.named(A)
    expect(epoch.name).toBeUndefined()
    epoch.recorded({ ...record, candidate: B }, 1)
    expect([epoch.name, epoch.isKnown, epoch.sinceOffset]).toEqual([B, true, 0])
    epoch.recorded({ ...record, candidate: C }, 2)
    epoch.named(A)
    epoch.recorded({ ...record, epoch: A }, 4)
    expect(epoch.name).toBe(B)
  })

  it('is what is named first in a log whose beginning is gone, and not a candidate before that', () => {
    const epoch = new LogEpoch(100)
    epoch.recorded({ ...record, candidate: C }, 100)
    expect([epoch.name, epoch.isKnown]).toEqual([C, false])
    epoch.named(A)
    expect([epoch.name, epoch.isKnown]).toEqual([A, true])
    epoch.named(B)
    expect([epoch.name, epoch.sinceOffset]).toEqual([A, 100])
  })

  it('is the first candidate where nothing names it', () => {
    const epoch = new LogEpoch(100)
    epoch.recorded({ ...record, candidate: C }, 105)
    epoch.recorded({ ...record, candidate: D }, 106)
    expect([epoch.name, epoch.isKnown, epoch.sinceOffset]).toEqual([C, false, 100])
  })

  it('changes where it is denied, once, and for all alike', () => {
    const follower = new LogEpoch(500, A)
    const reader = new LogEpoch(0)
    reader.recorded({ ...record, candidate: A }, 0)
    for (const epoch of [follower, reader]) {
      epoch.recorded({ ...record, candidate: B, denies: C }, 600)
      expect(epoch.name).toBe(A)
      epoch.recorded({ ...record, candidate: C, denies: A }, 601)
      epoch.recorded({ ...record, candidate: D, denies: A }, 602)
      epoch.named(A)
      expect([epoch.name, epoch.isKnown, epoch.sinceOffset]).toEqual([C, true, 601])
    }
  })

  it('is not the one that was denied, where a reader begins behind the denial of another', () => {
    const epoch = new LogEpoch(100)
    epoch.recorded({ ...record, candidate: B, denies: A }, 100)
    // From a node that has not read that far.
    epoch.named(A)
    expect(epoch.isKnown).toBe(false)
    epoch.named(B)
    expect([epoch.name, epoch.isKnown]).toEqual([B, true])
  })
})
