import { describe, expect, it } from 'vitest'
import { RateMeter } from './rate-meter.js'

describe('the rate meter', () => {
  it('says nothing from a single reading', () => {
    expect(new RateMeter().read(5_000, 100)).toBeNull()
  })

  it('follows a rate that changes within about two seconds', () => {
    const meter = new RateMeter()
    for (let atMs = 0; atMs <= 10_000; atMs += 250) meter.read(atMs, atMs)
    let rate: number | null = null
    for (let atMs = 10_250; atMs <= 12_250; atMs += 250) rate = meter.read(atMs, 10_000 + (atMs - 10_000) / 10)
    expect(rate).toBeCloseTo(100)
  })

  it('starts anew with a count that starts anew', () => {
    const meter = new RateMeter()
    meter.read(0, 1_000)
    expect(meter.read(1_000, 10)).toBeNull()
    expect(meter.read(2_000, 30)).toBe(20)
  })
})
