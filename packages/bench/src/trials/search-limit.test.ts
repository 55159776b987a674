import { describe, expect, it } from 'vitest'
import { searchLimit } from './search-limit.js'

async function search(limit: number, { start = 1_000, max = 100_000, precisionRatio = 0.02 } = {}) {
  const tried: number[] = []
  const found = await searchLimit({ start, max, precisionRatio }, async (count) => {
    tried.push(count)
    return count <= limit
  })
  return { found, tried }
}

describe('the search for a limit', () => {
  it('doubles until it fails, then halves the distance', async () => {
    const { found, tried } = await search(19_936)
    expect(tried.slice(0, 6)).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000])
    expect(tried.slice(6, 8)).toEqual([24_000, 20_000])
    expect(found).toBeLessThanOrEqual(19_936)
    expect(found).toBeGreaterThan(19_936 * 0.98)
  })

  it('tries nothing above the most, and that itself', async () => {
    const { found, tried } = await search(Number.POSITIVE_INFINITY, { max: 5_000 })
    expect(tried).toEqual([1_000, 2_000, 4_000, 5_000])
    expect(found).toBe(5_000)
  })

  it('looks below its start when that fails', async () => {
    expect((await search(300)).found).toBeGreaterThan(290)
    expect((await search(0, { start: 4 })).found).toBe(0)
  })

  it('is exact where it has to be', async () => {
    expect((await search(777, { precisionRatio: 0 })).found).toBe(777)
  })
})
