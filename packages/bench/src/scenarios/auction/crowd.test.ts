import { describe, expect, it } from 'vitest'
import { crowdOf, shardsOf } from './crowd.js'

const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0)

describe('the crowds of items', () => {
  it('are alike without an exponent', () => {
    expect(crowdOf(10, 4, 0)).toEqual([3, 3, 2, 2])
    expect(crowdOf(7, 1, 0)).toEqual([7])
    expect(crowdOf(2, 4, 0)).toEqual([1, 1, 0, 0])
  })

  it('fall with the rank of the item, and nobody is forgotten', () => {
    const crowd = crowdOf(10_000, 100, 1.1)
    expect(sum(crowd)).toBe(10_000)
    expect(crowd).toEqual(crowd.toSorted((a, b) => b - a))
    // 2 ** 1.1
    expect((crowd[0] ?? 0) / (crowd[1] ?? 1)).toBeCloseTo(2.14, 2)
    expect(crowdOf(6, 2, 1)).toEqual([4, 2])
  })
})

describe('the nodes of sharded items', () => {
  it('have about as many connections each', () => {
    expect(shardsOf([50, 30, 20, 10], 2)).toEqual([0, 1, 1, 0])
    const crowd = crowdOf(10_000, 100, 1.1)
    const shards = shardsOf(crowd, 4)
    const loads = [0, 1, 2, 3].map((node) => sum(crowd.filter((_, item) => shards[item] === node)))
    expect(Math.max(...loads) - Math.min(...loads)).toBeLessThan(10)
  })

  it('cannot divide one item', () => {
    expect(shardsOf([100], 4)).toEqual([0])
  })
})
