import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { NativeBackpressure } from './backpressure.js'

let stats = { connections: 0, sentByteCount: 0 }

beforeEach(() => {
  stats = { connections: 100, sentByteCount: 1_000_000 }
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

it('asks nobody to wait while the engine takes more', () => {
  const backpressure = new NativeBackpressure(() => stats)
  backpressure.note(true)
  expect(backpressure.relief).toBeUndefined()
})

it('lets everybody go on when the engine takes more again', async () => {
  const backpressure = new NativeBackpressure(() => stats)
  backpressure.note(false)
  const { relief } = backpressure
  backpressure.note(false)
  expect(backpressure.relief).toBe(relief)
  backpressure.note(true)
  await relief
  expect(backpressure.relief).toBeUndefined()
  expect(vi.getTimerCount()).toBe(0)
})

it('lets nobody wait for longer than a second, and for no second one before that was over', async () => {
  const backpressure = new NativeBackpressure(() => stats)
  backpressure.note(false)
  const { relief } = backpressure
  vi.advanceTimersByTime(1_000)
  await relief
  backpressure.note(false)
  expect(backpressure.relief).toBeUndefined()
  backpressure.note(true)
  backpressure.note(false)
  expect(backpressure.relief).toBeInstanceOf(Promise)
  backpressure.note(true)
})

it('lets them wait on while the connections take a lot', async () => {
  const backpressure = new NativeBackpressure(() => stats)
  backpressure.note(false)
  const { relief } = backpressure
  for (let second = 0; second < 3; second++) {
    stats.sentByteCount += 100 * 32 * 1024
    vi.advanceTimersByTime(1_000)
    expect(backpressure.relief).toBe(relief)
  }
  stats.sentByteCount += 100 * 32 * 1024 - 1
  vi.advanceTimersByTime(1_000)
  expect(backpressure.relief).toBeUndefined()
  await relief
})
