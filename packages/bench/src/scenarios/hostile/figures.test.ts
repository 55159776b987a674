import { describe, expect, it } from 'vitest'
import { shareOfAllowed } from './figures.js'
import { memoryBoundBytes } from './memory-bound.js'

describe('the verdict on a hostile case', () => {
  it.each([
    [25, 10, 1],
    [5, 0, 1],
    [50, 10, 2],
    [null, 10, null],
    [10, null, null],
  ])('allows twice the baseline and 5 ms: p99 %s beside %s takes %s of it', (p99, baseline, share) => {
    expect(shareOfAllowed(p99, baseline)).toBe(share)
  })

  it('lets memory grow by what the connections of the case may fill', () => {
    const quiet = { name: 'a', does: 'b', fills: [], attack: async () => undefined }
    const none = memoryBoundBytes(quiet, 0)
    const bare = memoryBoundBytes(quiet, 10) - none
    expect(memoryBoundBytes({ ...quiet, connections: 20 }, 10) - none).toBe(20 * bare)
    expect(memoryBoundBytes({ ...quiet, fills: ['outbox'] }, 10) - none - bare).toBe(10 * 1024 ** 2)
    expect(memoryBoundBytes({ ...quiet, fills: ['log'] }, 10) - none - bare).toBe(32 * 1024 ** 2)
  })
})
