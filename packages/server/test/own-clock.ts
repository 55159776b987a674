import { onTestFinished, vi } from 'vitest'

/**
 * Gives the test a clock that can be put forward once: what ends with time does not depend on how fast the machine is.
 * Begin with it: a server keeps the clock that it finds.
 */
export function useOwnClock(): { putForward(ms: number): void } {
  const toFake = ['Date', 'performance', 'setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] as const
  vi.useFakeTimers({ toFake: [...toFake], shouldAdvanceTime: true })
  onTestFinished(() => void vi.useRealTimers())
  return {
    putForward: (ms) => {
      vi.advanceTimersByTime(ms)
      vi.useRealTimers()
    },
  }
}
