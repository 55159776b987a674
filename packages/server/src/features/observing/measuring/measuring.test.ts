import { describe, expect, it } from 'vitest'
import { WebMQError } from 'webmq-client/protocol'
import { tokenFailureOf } from '../../../kernel/identity/token-failure.js'
import { DURATION_BOUNDS, Histogram } from './histogram.js'
import { PublishTimings } from './publish-timings.js'

describe('Histogram', () => {
  it('counts each duration in its bucket and in all larger ones', () => {
    const histogram = new Histogram()
    histogram.observe(0.1)
    histogram.observe(3)
    histogram.observe(60_000, 2)
    histogram.observe(-1)
    const { cumulativeCounts, count, sumSeconds } = histogram.stats()
    expect(cumulativeCounts).toHaveLength(DURATION_BOUNDS.length + 1)
    expect(cumulativeCounts[0]).toBe(2)
    expect(cumulativeCounts[DURATION_BOUNDS.indexOf(0.0025)]).toBe(2)
    expect(cumulativeCounts[DURATION_BOUNDS.indexOf(0.005)]).toBe(3)
    expect(cumulativeCounts.at(-2)).toBe(3)
    expect(cumulativeCounts.at(-1)).toBe(5)
    expect(count).toBe(5)
    expect(sumSeconds).toBeCloseTo(120.0031)
  })
})

describe('PublishTimings', () => {
  const message = (text = 'x') => ({ key: 'a', payload: Buffer.from(text), isBinary: false })

  it('measures each publish while they are few', () => {
    let nowMs = 1
    const timings = new PublishTimings({ hasListeners: () => false, now: () => nowMs })
    for (let count = 0; count < 5; count++) {
      const timing = timings.begin(message())
      nowMs += 2
      timing?.accepted()
    }
    expect(timings.publish.stats()).toMatchObject({ count: 5, sumSeconds: 0.01 })
    expect(timings.broker.stats()).toEqual(timings.publish.stats())
  })

  it('measures one of 256 when they are many, which stands for all of them', () => {
    let nowMs = 1
    let measuredCount = 0
    const timings = new PublishTimings({ hasListeners: () => false, now: () => nowMs })
    for (let count = 0; count < 64_000; count++) {
      nowMs += 0.01
      const timing = timings.begin(message())
      if (timing !== undefined) measuredCount++
      timing?.accepted()
    }
    expect(measuredCount).toBeLessThan(260)
    expect(timings.publish.stats().count).toBeGreaterThan(63_700)
    expect(timings.publish.stats().count).toBeLessThanOrEqual(64_000)
    // And each again, once they are few and somebody has looked.
    timings.measureNext()
    measuredCount = 0
    for (let count = 0; count < 20; count++) {
      nowMs += 100
      const timing = timings.begin(message())
      if (timing !== undefined) measuredCount++
      timing?.accepted()
    }
    expect(measuredCount).toBe(20)
    expect(timings.publish.stats().count).toBe(64_020)
  })

  it('counts the time that a message has waited for its turn, but not as time of the broker', () => {
    let nowMs = 100
    const timings = new PublishTimings({ hasListeners: () => false, now: () => nowMs })
    timings.receivedMs = 40
    const timing = timings.begin(message())
    timings.receivedMs = 0
    nowMs = 110
    timing?.accepted()
    expect(timings.publish.stats().sumSeconds).toBeCloseTo(0.07)
    expect(timings.broker.stats().sumSeconds).toBeCloseTo(0.01)
  })

  it('follows one message until it comes back, and no other one with its key', () => {
    let nowMs = 1
    const timings = new PublishTimings({ hasListeners: (key) => key === 'a', now: () => nowMs })
    timings.begin({ ...message(), key: 'nobody listens' })
    expect(timings.isAwaiting).toBe(false)
    timings.begin(message('first'))
    timings.begin(message('second'))
    nowMs += 3
    timings.delivered(message('another'))
    timings.delivered({ ...message('first'), key: 'b' })
    expect(timings.lag.stats().count).toBe(0)
    timings.delivered(message('first'))
    expect(timings.lag.stats()).toMatchObject({ count: 1, sumSeconds: 0.003 })
    timings.delivered(message('first'))
    expect(timings.lag.stats().count).toBe(1)
  })
})

describe('tokenFailureOf', () => {
  it('names the reason, also for errors that it does not know', () => {
    const jose = (code: string) =>
      new WebMQError('E_TOKEN_INVALID', { detail: 'x', cause: Object.assign(new Error(code), { code }) })
    expect(tokenFailureOf(new WebMQError('E_TOKEN_EXPIRED'))).toBe('expired')
    expect(tokenFailureOf(jose('ERR_JWS_SIGNATURE_VERIFICATION_FAILED'))).toBe('signature')
    expect(tokenFailureOf(jose('ERR_JWKS_NO_MATCHING_KEY'))).toBe('key')
    expect(tokenFailureOf(jose('ERR_NEW'))).toBe('malformed')
    expect(tokenFailureOf(new WebMQError('E_TOKEN_INVALID'))).toBe('malformed')
    expect(tokenFailureOf(new WebMQError('E_RATE_LIMIT'))).toBe('too-many')
    expect(tokenFailureOf(new TypeError('a bug'))).toBe('keys-unavailable')
  })
})
