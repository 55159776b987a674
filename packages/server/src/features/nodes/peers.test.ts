import { expect, it } from 'vitest'
import { compareClock, type Peer } from './peers.js'

const MINUTE_MS = 60_000

function peer(): Peer {
  return { expiry: undefined, hasReported: true, isDifferent: false }
}

it('is sure of a clock that is apart once two leases have said so', () => {
  for (const apartMs of [-5 * MINUTE_MS, 5 * MINUTE_MS]) {
    const other = peer()
    compareClock(other, Date.now() + apartMs, 0)
    expect(other.clock?.isSure).toBe(false)
    compareClock(other, Date.now() + apartMs, 3_000)
    expect(other.clock?.isSure).toBe(true)
    expect(other.clock?.apartMs).toBeCloseTo(5 * MINUTE_MS, -3)
    compareClock(other, Date.now(), 6_000)
    expect(other.clock).toBeUndefined()
  }
})

it('takes leases that waited while this node stood still for one, and those that tell no time for none', () => {
  const other = peer()
  for (const lateMs of [120_000, 117_000, 114_000]) compareClock(other, Date.now() - lateMs, 0)
  expect(other.clock?.isSure).toBe(false)
  for (const time of [undefined, 'now', Number.NaN, null]) {
    compareClock(other, time, 9_000)
    expect(other.clock).toBeUndefined()
  }
})
