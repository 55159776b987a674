import { describe, expect, it } from 'vitest'
import { EpochNaming } from './epoch-naming.js'

describe('naming the epoch', () => {
  it.each([
    [0, 125],
    [1, 250],
  ])('is due after an eighth to a quarter of the bytes without a name (%s)', (chance, limit) => {
    const naming = new EpochNaming({ maxBytes: 1_000, maxAgeMs: undefined, random: () => chance })
    expect(naming.unnamed(limit, 0)).toBe(false)
    expect(naming.unnamed(1, 0)).toBe(true)
    expect(naming.unnamed(limit, 0)).toBe(false)
    naming.named(0)
    expect(naming.unnamed(limit, 1e12)).toBe(false)
  })

  it('is due after such a share of the age, too', () => {
    const naming = new EpochNaming({ maxBytes: 1e9, maxAgeMs: 8_000, random: () => 0 })
    expect(naming.unnamed(1, 5_000)).toBe(false)
    expect(naming.unnamed(1, 6_000)).toBe(false)
    expect(naming.unnamed(1, 6_001)).toBe(true)
    naming.named(7_000)
    expect(naming.unnamed(1, 8_000)).toBe(false)
  })
})
