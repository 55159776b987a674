import { expect, it, vi } from 'vitest'
import { FullWatch } from './full-watch.js'

it('tells the audit log of each reading, and the log once a minute', () => {
  vi.useFakeTimers()
  try {
    const stats = { fullCount: 0, connectionLimit: 7 }
    const lines: unknown[] = []
    const told: number[] = []
    const watch = new FullWatch({
      stats: () => stats,
      logger: { warn: (fields: unknown) => void lines.push(fields) },
      observer: { turnedAway: (count) => void told.push(count) },
    })
    watch.start()
    vi.advanceTimersByTime(5_000)
    expect(told).toEqual([])
    for (const fullCount of [3, 5, 5]) {
      stats.fullCount = fullCount
      vi.advanceTimersByTime(5_000)
    }
    expect(told).toEqual([3, 2])
    expect(lines).toEqual([{ code: 'E_CONNECTION_LIMIT', connectionLimit: 7, count: 3 }])
    vi.advanceTimersByTime(60_000)
    stats.fullCount = 6
    watch.stop()
    expect(told).toEqual([3, 2, 1])
    expect(lines[1]).toMatchObject({ count: 3 })
    stats.fullCount = 9
    vi.advanceTimersByTime(60_000)
    expect(told).toHaveLength(3)
  } finally {
    vi.useRealTimers()
  }
})
