import { describe, expect, it } from 'vitest'
import { RunError } from '../exit-codes.js'
import { processCpuSeconds, processUsage } from './process-usage.js'

describe('what a process uses', () => {
  it('is what the process says itself', () => {
    const { rssBytes, peakRssBytes } = processUsage(process.pid)
    expect(rssBytes / process.memoryUsage.rss()).toBeGreaterThan(0.5)
    expect(rssBytes / process.memoryUsage.rss()).toBeLessThan(2)
    expect(peakRssBytes).toBeGreaterThanOrEqual(rssBytes)
  })

  it('has CPU seconds, in steps of 10 ms', () => {
    const { user, system } = process.cpuUsage()
    const seconds = processCpuSeconds(process.pid) ?? Number.NaN
    expect(seconds).toBeGreaterThan((user + system) / 1_000_000 - 0.05)
    const { user: laterUser, system: laterSystem } = process.cpuUsage()
    expect(seconds).toBeLessThan((laterUser + laterSystem) / 1_000_000 + 0.05)
    expect(processCpuSeconds(2 ** 30)).toBeNull()
  })

  it('cannot be told of a process that is gone', () => {
    expect(() => processUsage(2 ** 30)).toThrow(RunError)
  })
})
