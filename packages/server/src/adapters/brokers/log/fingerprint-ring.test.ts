import { expect, it } from 'vitest'
import { FingerprintRing, MAX_RING_RECORDS } from './fingerprint-ring.js'

it('finds the newest record at or before an offset, and forgets the oldest ones', () => {
  const ring = new FingerprintRing()
  expect([ring.offsetAt(5), ring.fingerprintAt(5)]).toEqual([-1, 0])
  const count = MAX_RING_RECORDS + 1_000
  for (let index = 1; index <= count; index++) ring.add(index * 10, index)
  expect([ring.offsetAt(count * 10 + 5), ring.fingerprintAt(count * 10)]).toEqual([count * 10, count])
  expect([ring.offsetAt(50_005), ring.fingerprintAt(50_009)]).toEqual([50_000, 5_000])
  expect([ring.offsetAt(10_010), ring.fingerprintAt(10_010)]).toEqual([10_010, 1_001])
  expect([ring.offsetAt(10_009), ring.fingerprintAt(10_000)]).toEqual([-1, 0])
})
