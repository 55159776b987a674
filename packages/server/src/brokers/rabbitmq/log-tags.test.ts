import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { LogTags } from './log-tags.js'

const MESSAGE_BYTES = 872

describe('naming the epoch in a log', () => {
  let writeCount = 0
  let tags: LogTags

  beforeEach(() => {
    vi.useFakeTimers()
    writeCount = 0
    tags = new LogTags({ maxBytes: 10_000, write: () => writeCount++, random: () => 0.5 })
  })

  afterEach(() => {
    tags.stop()
    vi.useRealTimers()
  })

  it('is done after so many bytes without it, once until it has come', () => {
    // With what surrounds it a message is 1,000 bytes.
    for (let count = 0; count < 14; count++) tags.unnamed(MESSAGE_BYTES)
    expect(writeCount).toBe(0)
    for (let count = 0; count < 100; count++) tags.unnamed(MESSAGE_BYTES)
    expect(writeCount).toBe(1)
    tags.named()
    for (let count = 0; count < 15; count++) tags.unnamed(MESSAGE_BYTES)
    expect(writeCount).toBe(2)
  })

  it('is done after a time without it, when there was something, and not when somebody else has', () => {
    vi.advanceTimersByTime(1_000_000)
    tags.unnamed(1)
    tags.named()
    vi.advanceTimersByTime(1_000_000)
    expect(writeCount).toBe(0)
    tags.unnamed(1)
    vi.advanceTimersByTime(89_000)
    expect(writeCount).toBe(0)
    vi.advanceTimersByTime(2_000)
    expect(writeCount).toBe(1)
  })

  it('is not done once stopped', () => {
    tags.unnamed(1)
    tags.stop()
    tags.unnamed(1_000_000)
    vi.advanceTimersByTime(1_000_000)
    expect(writeCount).toBe(0)
  })
})
