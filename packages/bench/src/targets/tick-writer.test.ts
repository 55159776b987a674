import { describe, expect, it } from 'vitest'
import { FIRST_SEQ, TickWriter } from './tick-writer.js'

const NOW_US = 6_854_163_571.4

describe('a tick', () => {
  it.each([96, 97, 100, 104, 105, 106, 175, 1_000])('of %d bytes has that size and is JSON', (payloadBytes) => {
    const bytes = new TickWriter(payloadBytes, NOW_US).write(FIRST_SEQ, NOW_US)
    expect(bytes).toHaveLength(payloadBytes)
    expect(JSON.parse(bytes.toString())).toMatchObject({
      t: 'fanout_tick',
      p: { seq: FIRST_SEQ, ts_us: 6_854_163_571, s: 'ES', px: 5234.75, q: 2 },
    })
  })

  it('carries the number and the time it was last written with', () => {
    const writer = new TickWriter(100, NOW_US)
    writer.write(FIRST_SEQ, NOW_US)
    const { p } = JSON.parse(writer.write(FIRST_SEQ + 98_765, NOW_US + 1_000_000.7).toString())
    expect(p).toMatchObject({ seq: FIRST_SEQ + 98_765, ts_us: 6_855_163_572 })
  })

  it('is the same as an object', () => {
    for (const payloadBytes of [96, 100, 120]) {
      const writer = new TickWriter(payloadBytes, NOW_US)
      expect(writer.object(FIRST_SEQ, NOW_US)).toEqual(JSON.parse(writer.write(FIRST_SEQ, NOW_US).toString()))
    }
  })

  it('is refused where it has no room', () => {
    expect(() => new TickWriter(80, NOW_US)).toThrow(/at least 88 bytes/)
  })
})
