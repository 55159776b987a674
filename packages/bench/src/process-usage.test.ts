import { describe, expect, it } from 'vitest'
import { RunError } from './exit-codes.js'
import { cpuSecondsOf, processUsage } from './process-usage.js'

describe('what a process uses', () => {
  it('is what the process says itself', () => {
    const { user, system } = process.cpuUsage()
    const { cpuSeconds, rssBytes, peakRssBytes } = processUsage(process.pid)
    expect(cpuSeconds).toBeGreaterThan((user + system) / 1_000_000 - 0.1)
    expect(cpuSeconds).toBeLessThan((user + system) / 1_000_000 + 1)
    expect(rssBytes / process.memoryUsage.rss()).toBeGreaterThan(0.5)
    expect(peakRssBytes).toBeGreaterThanOrEqual(rssBytes)
  })

  it('is read whatever the name of the program', () => {
    const stat = '7 (a ) b (c) S 1 7 7 0 -1 4194304 500 0 0 0 123 45 9 9 20 0 11 0'
    expect(cpuSecondsOf(stat)).toBeCloseTo(1.68)
  })

  it('cannot be told of a process that is gone', () => {
    expect(() => processUsage(2 ** 30)).toThrow(RunError)
  })
})
