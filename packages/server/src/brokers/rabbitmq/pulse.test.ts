import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Pulse } from './pulse.js'

const INTERVAL_MS = 1_000

function watched(answer?: (pulse: Pulse) => void) {
  const told: string[] = []
  const state = { askedCount: 0 }
  const pulse: Pulse = new Pulse({
    intervalMs: INTERVAL_MS,
    ask: () => {
      state.askedCount++
      answer?.(pulse)
    },
    silent: (detail) => told.push(detail),
  })
  return { pulse, told, state }
}

describe('a pulse', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] }))
  afterEach(() => void vi.useRealTimers())

  it('asks when it hears nothing, and goes on while there is an answer', () => {
    const { pulse, told, state } = watched((asked) => asked.heard())
    vi.advanceTimersByTime(60_000)
    pulse.stop()
    expect(told).toEqual([])
    expect(state.askedCount).toBeGreaterThan(60)
  })

  it('ends after two silent intervals, with one question asked, once', () => {
    const { told, state } = watched()
    vi.advanceTimersByTime(1_800)
    expect(told).toEqual([])
    vi.advanceTimersByTime(200)
    expect(told).toEqual([expect.stringMatching(/^no answer for (19|20)\d\d ms$/)])
    vi.advanceTimersByTime(10_000)
    expect(told).toHaveLength(1)
    expect(state.askedCount).toBe(1)
  })

  it('asks nothing while it hears something else', () => {
    const { pulse, told, state } = watched()
    for (let round = 0; round < 50; round++) {
      pulse.heard()
      vi.advanceTimersByTime(200)
    }
    pulse.stop()
    expect(told).toEqual([])
    expect(state.askedCount).toBe(0)
  })

  it('counts no silence while paused, and all of it afterwards', () => {
    const { pulse, told } = watched()
    pulse.isPaused = true
    vi.advanceTimersByTime(60_000)
    pulse.isPaused = false
    expect(told).toEqual([])
    vi.advanceTimersByTime(2_500)
    expect(told).toHaveLength(1)
  })

  it('does not take it for silence when its own process has stood still', () => {
    const { pulse, told } = watched()
    vi.advanceTimersByTime(500)
    const stood = performance.now() + 60_000
    const now = vi.spyOn(performance, 'now').mockImplementation(() => stood)
    // The first look after that comes before anything is read.
    vi.advanceTimersByTime(250)
    expect(told).toEqual([])
    pulse.heard()
    vi.advanceTimersByTime(250)
    expect(told).toEqual([])
    now.mockRestore()
    pulse.stop()
  })
})
