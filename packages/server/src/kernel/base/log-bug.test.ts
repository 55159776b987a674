import { expect, it, vi } from 'vitest'
import { logBug } from './log-bug.js'

it('logs one line per second, message and logger, and counts the others', () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  try {
    const [one, other] = [{ error: vi.fn() }, { error: vi.fn() }]
    for (let count = 0; count < 1_000; count++) {
      logBug(one, { count }, 'a')
      logBug(one, { count }, 'b')
    }
    logBug(other, {}, 'a')
    vi.advanceTimersByTime(1_000)
    logBug(one, { count: 1_000 }, 'a')
    expect(one.error.mock.calls).toEqual([
      [{ count: 0 }, 'a'],
      [{ count: 0 }, 'b'],
      [{ count: 1_000, others: 999 }, 'a'],
    ])
    expect(other.error).toHaveBeenCalledOnce()
  } finally {
    vi.useRealTimers()
  }
})
