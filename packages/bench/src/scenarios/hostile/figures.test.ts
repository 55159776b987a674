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

  it('lets memory grow with every connection that the clients hold', () => {
    const hostileCase = { name: 'a', does: 'b', attack: async () => undefined }
    const one = memoryBoundBytes(hostileCase, 10)
    expect(memoryBoundBytes({ ...hostileCase, connections: 2 }, 10) - one).toBe(one - memoryBoundBytes(hostileCase, 0))
  })
})
