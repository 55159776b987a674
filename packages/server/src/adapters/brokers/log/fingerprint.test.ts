import { describe, expect, it } from 'vitest'
import {
  fingerprintOfForeign,
  fingerprintOfPlace,
  fingerprintOfSource,
  fingerprintOfText,
  fingerprintOfTime,
} from './fingerprint.js'

const TIME_MS = 1_764_000_000_123

// Clients come back with fingerprints that an earlier version has given.
describe('a fingerprint', () => {
  it('of a message of a node never changes', () => {
    expect([
      fingerprintOfSource({ node: '0123456789abcdef', sequence: 1 }, TIME_MS),
      fingerprintOfSource({ node: '0123456789abcdef', sequence: 2 ** 40 + 7 }, TIME_MS),
      fingerprintOfSource({ node: 'fedcba9876543210', sequence: 1 }, 0),
    ]).toEqual([776_580_511, 45_615_429, 567_497_205])
  })

  it('of a message of another program never changes', () => {
    const payload = Buffer.from('"hello"')
    expect([
      fingerprintOfForeign({ key: 'chat.42', payload, timeMs: TIME_MS }),
      fingerprintOfForeign({ key: 'chat.42', messageId: 'id', payload, timeMs: TIME_MS }),
      fingerprintOfForeign({ key: 'ä', payload: Buffer.alloc(1_000, 7), timeMs: 0 }),
      fingerprintOfForeign({ key: '', payload: Buffer.alloc(0), timeMs: 0 }),
    ]).toEqual([627_383_359, 604_968_583, 330_404_079, 266_541_671])
  })

  it('of any other record never changes', () => {
    expect([
      fingerprintOfTime(1_764_000_000, 123_456_789),
      fingerprintOfText('0123456789abcdef'),
      fingerprintOfPlace(1, TIME_MS),
    ]).toEqual([342_122_349, 605_477_795, 330_899_245])
  })

  it('has 30 bits, is never 0, and seldom that of another record', () => {
    const found = new Set<number>()
    for (let sequence = 1; sequence <= 20_000; sequence++)
      found.add(fingerprintOfSource({ node: '0123456789abcdef', sequence }, TIME_MS + (sequence >> 4)))
    expect(found.size).toBeGreaterThan(19_990)
    for (const fingerprint of found) expect(fingerprint > 0 && fingerprint < 2 ** 30).toBe(true)
  })

  it('of a long payload depends on its ends and its length', () => {
    const of = (payload: Uint8Array) => fingerprintOfForeign({ key: 'k', payload, timeMs: 0 })
    const payload = Buffer.alloc(1_000, 7)
    const changed = (at: number) => of(Buffer.from(payload).fill(8, at, at + 1))
    expect(
      new Set([of(payload), changed(0), changed(63), changed(936), changed(999), of(payload.subarray(1))]).size,
    ).toBe(6)
  })
})
