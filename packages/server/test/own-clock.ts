import { onTestFinished, vi } from 'vitest'

/**
 * Gives the test a clock that can be put forward once: what ends with time does not depend on how fast the machine is.
 * Begin with it: a server keeps the clock that it finds.
 */
export function useOwnClock(): { putForward(ms: number): void } {
  vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'], shouldAdvanceTime: true })
  onTestFinished(() => void vi.useRealTimers())
  return {
    putForward: (ms) => {
      vi.advanceTimersByTime(ms)
      vi.useRealTimers()
    },
  }
}
