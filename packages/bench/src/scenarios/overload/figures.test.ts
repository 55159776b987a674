import { describe, expect, it } from 'vitest'
import { idealMs, normalAfterMs, normalLimitMs, spanFigures } from './figures.js'
import type { PublishRecord } from './messages.js'

const S = 1_000_000

/** A queue with 100 messages per second; the one at second `t` waits for `waitsS(t)` seconds. */
function served(seconds: number, waitsS: (atS: number) => number | null): PublishRecord[] {
  return Array.from({ length: seconds * 100 }, (_, number) => {
    const atS = number / 100
    const waitS = waitsS(atS)
    return { createdUs: atS * S, answeredUs: waitS === null ? null : (atS + waitS) * S, failure: null }
  })
}

const SPAN = { startUs: 10 * S, endUs: 30 * S }

describe('normal again', () => {
  it('is when the first message is served as before, and all later ones', () => {
    const queue = served(30, (atS) => (atS < 10 ? 0.01 : Math.max(0.01, 3 - (atS - 10) / 2)))
    // Waits for 300 ms: 5.4 s after the fault.
    expect(normalAfterMs(queue, SPAN, 300)).toBeCloseTo(5_400, -2)
  })

  it('is at once where nothing waited', () => {
    expect(
      normalAfterMs(
        served(30, () => 0.01),
        SPAN,
        300,
      ),
    ).toBe(0)
  })

  it('is not before an older message is answered', () => {
    const messages = served(30, (atS) => (atS === 10.5 ? 8 : 0.01))
    // One of a hundred may be slow, but those who look at it later still see it wait.
    expect(
      normalAfterMs(
        served(30, (atS) => (atS === 9 ? 5 : 0.01)),
        SPAN,
        300,
      ),
    ).toBeCloseTo(3_700, 0)
    expect(normalAfterMs(messages, { ...SPAN, startUs: 11 * S }, 300)).toBeCloseTo(7_200, 0)
  })

  it('is not while later ones wait again, or fail', () => {
    const again = (fromS: number) => served(30, (atS) => (atS > fromS && atS < fromS + 1 ? 1 : 0.01))
    expect(normalAfterMs(again(12), SPAN, 300)).toBeGreaterThanOrEqual(2_900)
    const failing = served(30, () => 0.01).map((one) =>
      one.createdUs > 12 * S && one.createdUs < 12.5 * S ? { ...one, failure: 'E_TIMEOUT' } : one,
    )
    expect(normalAfterMs(failing, SPAN, 300)).toBeGreaterThanOrEqual(2_000)
    // More than three seconds later the fault is not the cause.
    expect(normalAfterMs(again(15), SPAN, 300)).toBe(0)
  })

  it('is unknown while messages wait', () => {
    expect(
      normalAfterMs(
        served(30, (atS) => (atS < 10 ? 0.01 : null)),
        SPAN,
        300,
      ),
    ).toBeNull()
    expect(
      normalAfterMs(
        served(30, (atS) => (atS === 9 ? null : 0.01)),
        SPAN,
        300,
      ),
    ).toBeNull()
  })

  it('is measured by the time before, and by 300 ms at least', () => {
    expect([normalLimitMs(null), normalLimitMs(20), normalLimitMs(400)]).toEqual([300, 300, 800])
  })

  it('takes a queue the backlog over the capacity that is left', () => {
    expect(idealMs(2_100, 1_000, 700)).toBeCloseTo(7_000)
  })
})

describe('the figures of a span', () => {
  const messages = [
    { createdUs: 0, answeredUs: 1.5 * S, failure: null },
    { createdUs: 0.5 * S, answeredUs: 0.6 * S, failure: null },
    { createdUs: 1.2 * S, answeredUs: 1.3 * S, failure: null },
    { createdUs: 1.4 * S, answeredUs: 1.9 * S, failure: 'E_TIMEOUT' },
    { createdUs: 1.6 * S, answeredUs: null, failure: null },
  ]
  const refusals = [
    { atUs: 0.5 * S, count: 4 },
    { atUs: 1.1 * S, count: 1 },
    { atUs: 1.2 * S, count: 2 },
  ]
  const log = { messages, refusals, utilization: 0 }
  const span = { startUs: S, endUs: 2 * S }

  it('count what happened within it', () => {
    expect(spanFigures(log, span)).toMatchObject({
      offeredPerSecond: 3,
      ackedPerSecond: 2,
      refusedCount: 2,
      mostRefusals: 2,
      failedCount: 1,
      failures: ['1 E_TIMEOUT'],
    })
    // To 0.1 %.
    expect(spanFigures(log, span).latencyMs.max).toBeCloseTo(1_500, -1)
  })

  it('are held against what came and waited, up to the capacity', () => {
    expect(spanFigures(log, span).possiblePerSecond).toBe(4)
    expect(spanFigures(log, span, 3).possiblePerSecond).toBe(3)
  })
})
