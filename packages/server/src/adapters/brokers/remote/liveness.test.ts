import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Liveness } from './liveness.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

function watch() {
  const probe = vi.fn()
  const silent = vi.fn()
  return { liveness: new Liveness({ intervalMs: 1_000, probe, silent }), probe, silent }
}

describe('Liveness', () => {
  it('asks after a quarter of an interval of silence, then once per interval', () => {
    const { probe } = watch()
    vi.advanceTimersByTime(249)
    expect(probe).toHaveBeenCalledTimes(0)
    vi.advanceTimersByTime(1)
    expect(probe).toHaveBeenCalledTimes(1)
    vi.advanceTimersByTime(999)
    expect(probe).toHaveBeenCalledTimes(1)
    vi.advanceTimersByTime(1)
    expect(probe).toHaveBeenCalledTimes(2)
  })

  it('finds silence within two intervals, once, and asks no more', () => {
    const { probe, silent } = watch()
    vi.advanceTimersByTime(1_749)
    expect(silent).not.toHaveBeenCalled()
    vi.advanceTimersByTime(251)
    expect(silent).toHaveBeenCalledExactlyOnceWith('no answer for 2000 ms')
    vi.advanceTimersByTime(10_000)
    expect(silent).toHaveBeenCalledTimes(1)
    expect(probe).toHaveBeenCalledTimes(2)
  })

  it('is satisfied by one sign of life per interval, and then has no reason to ask twice', () => {
    const { liveness, probe, silent } = watch()
    for (let second = 0; second < 20; second++) {
      vi.advanceTimersByTime(1_000)
      liveness.alive()
    }
    expect(silent).not.toHaveBeenCalled()
    expect(probe.mock.calls.length).toBeLessThanOrEqual(20)
  })

  it('does not count silence while it is paused', () => {
    const { liveness, probe, silent } = watch()
    liveness.isPaused = true
    vi.advanceTimersByTime(60_000)
    expect(probe).not.toHaveBeenCalled()
    liveness.isPaused = false
    vi.advanceTimersByTime(1_750)
    expect(silent).not.toHaveBeenCalled()
    vi.advanceTimersByTime(250)
    expect(silent).toHaveBeenCalledOnce()
  })

  it('counts a look that came late once: this process stood still, and has not read yet what arrived', () => {
    vi.useRealTimers()
    const silent = vi.fn()
    const liveness = new Liveness({ intervalMs: 40, probe: () => undefined, silent })
    const until = performance.now() + 200
    while (performance.now() < until);
    return new Promise<void>((resolve) => {
      setTimeout(() => {
        liveness.stop()
        expect(silent).not.toHaveBeenCalled()
        resolve()
      }, 0)
    })
  })

  it('says nothing after it was stopped', () => {
    const { liveness, probe, silent } = watch()
    liveness.stop()
    vi.advanceTimersByTime(60_000)
    expect(probe).not.toHaveBeenCalled()
    expect(silent).not.toHaveBeenCalled()
  })
})
