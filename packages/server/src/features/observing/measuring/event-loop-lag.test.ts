import { describe, expect, it } from 'vitest'
import { EventLoopLag } from './event-loop-lag.js'

/** An event loop by a virtual clock, which counts how often the lag wakes it. */
class FakeLoop {
  wakeCount = 0
  #nowMs = 0
  #workedMs = 0
  #timer: { readonly dueMs: number; readonly fire: () => void } | undefined
  readonly lag = new EventLoopLag({
    now: () => this.#nowMs,
    workedMs: () => this.#workedMs,
    wait: (fire, delayMs) => {
      this.#timer = { dueMs: this.#nowMs + delayMs, fire }
    },
  })

  /** Passes time in which nothing but the timer of the lag runs. */
  wait(durationMs: number): void {
    const endMs = this.#nowMs + durationMs
    while (this.#timer !== undefined && this.#timer.dueMs <= endMs) {
      const { dueMs, fire } = this.#timer
      this.#nowMs = Math.max(this.#nowMs, dueMs)
      this.wakeCount++
      this.#timer = undefined
      fire()
    }
    this.#nowMs = Math.max(this.#nowMs, endMs)
  }

  /** The process gets no processor. */
  stand(durationMs: number): void {
    this.#nowMs += durationMs
    this.wait(0)
  }

  /** The event loop works, and no timer fires meanwhile. */
  work(durationMs: number): void {
    this.#nowMs += durationMs
    this.#workedMs += durationMs
    this.wait(0)
  }
}

describe('EventLoopLag', () => {
  it('wakes an idle process once a second', () => {
    // Symptom: a node that was scraped once woke 100 times a second. Cause: the delay was sampled every 10 ms for good.
    const loop = new FakeLoop()
    loop.lag.start()
    loop.wait(2_000)
    loop.wakeCount = 0
    loop.wait(60_000)
    expect(loop.wakeCount).toBe(60)
  })

  it('wakes nothing once it is stopped', () => {
    const loop = new FakeLoop()
    loop.lag.start()
    loop.wait(2_000)
    loop.lag.stop()
    loop.wait(2_000)
    loop.wakeCount = 0
    loop.wait(60_000)
    expect(loop.wakeCount).toBe(0)
  })

  it('tells of an idle event loop what samples every 10 ms would tell', () => {
    const loop = new FakeLoop()
    loop.lag.start()
    loop.wait(15_000)
    const { min, max, mean, p50, p99 } = loop.lag.read()
    for (const value of [min, max, mean, p50, p99]) expect(value).toBeCloseTo(0.01, 4)
    loop.wait(500)
    expect(loop.lag.read().p50).toBeCloseTo(0.01, 4)
  })

  it('tells each block of an idle event loop, with all work around it', () => {
    const loop = new FakeLoop()
    loop.lag.start()
    loop.wait(2_000)
    loop.lag.read()
    loop.work(80)
    loop.wait(800)
    loop.work(3)
    loop.wait(200)
    const { max, mean } = loop.lag.read()
    expect(max).toBeGreaterThanOrEqual(0.09)
    expect(max).toBeLessThanOrEqual(0.095)
    expect(mean).toBeLessThan(0.02)
  })

  it('tells a block that is longer than the time between two looks', () => {
    const loop = new FakeLoop()
    loop.lag.start()
    loop.wait(2_000)
    loop.lag.read()
    loop.work(5_000)
    loop.wait(20)
    expect(loop.lag.read().max).toBeCloseTo(5.01, 1)
  })

  it('stays idle over a single block, and wakes again for the work that follows', () => {
    // Symptom: one garbage collection of an idle process brought 100 wake-ups.
    const loop = new FakeLoop()
    loop.lag.start()
    loop.wait(2_000)
    loop.work(60)
    loop.wakeCount = 0
    loop.wait(10_000)
    expect(loop.wakeCount).toBeLessThanOrEqual(11)
    loop.wakeCount = 0
    for (let round = 0; round < 400; round++) {
      loop.work(5)
      loop.wait(5)
    }
    expect(loop.wakeCount).toBeGreaterThan(100)
  })

  it('tells a delay that is not its own, and stays idle', () => {
    const loop = new FakeLoop()
    loop.lag.start()
    loop.wait(2_000)
    loop.lag.read()
    loop.stand(2_000)
    expect(loop.lag.read().max).toBeGreaterThan(0.5)
    loop.wakeCount = 0
    loop.wait(10_000)
    expect(loop.wakeCount).toBe(10)
  })

  it('samples a busy event loop every 10 ms, and again seldom once it is idle', () => {
    const loop = new FakeLoop()
    loop.lag.start()
    loop.wait(2_000)
    for (let round = 0; round < 100; round++) {
      loop.work(20)
      loop.wait(20)
    }
    loop.lag.read()
    for (let round = 0; round < 100; round++) {
      loop.work(30)
      loop.wait(30)
    }
    const { p50, p99, max } = loop.lag.read()
    expect(p50).toBeLessThan(0.015)
    expect(p99).toBeGreaterThan(0.03)
    expect(max).toBeLessThan(0.045)
    loop.wait(2_000)
    loop.wakeCount = 0
    loop.wait(10_000)
    expect(loop.wakeCount).toBe(10)
  })

  it('is 0 before the first sample', () => {
    const loop = new FakeLoop()
    loop.lag.start()
    expect(loop.lag.read()).toEqual({ min: 0, max: 0, mean: 0, stddev: 0, p50: 0, p90: 0, p99: 0 })
  })
})
