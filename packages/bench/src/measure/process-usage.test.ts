import { describe, expect, it } from 'vitest'
import { RunError } from '../exit-codes.js'
import { processUsage } from './process-usage.js'

describe('what a process uses', () => {
  it('is what the process says itself', () => {
    const { rssBytes, peakRssBytes } = processUsage(process.pid)
    expect(rssBytes / process.memoryUsage.rss()).toBeGreaterThan(0.5)
    expect(rssBytes / process.memoryUsage.rss()).toBeLessThan(2)
    expect(peakRssBytes).toBeGreaterThanOrEqual(rssBytes)
  })

  it('cannot be told of a process that is gone', () => {
    expect(() => processUsage(2 ** 30)).toThrow(RunError)
  })
})
