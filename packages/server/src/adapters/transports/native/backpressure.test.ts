import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { NativeBackpressure } from './backpressure.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

it('lets publishers go on while the engine takes more', () => {
  const backpressure = new NativeBackpressure(() => true)
  backpressure.note(true)
  expect(backpressure.writable).toBeUndefined()
})

it('lets all publishers go on when the engine takes more again', async () => {
  const backpressure = new NativeBackpressure(() => true)
  backpressure.note(false)
  const { writable } = backpressure
  backpressure.note(false)
  expect(backpressure.writable).toBe(writable)
  backpressure.note(true)
  await writable
  expect(backpressure.writable).toBeUndefined()
  expect(vi.getTimerCount()).toBe(0)
})

it('resolves within a second, and asks the engine whether to wait on', async () => {
  let isWritable = false
  const backpressure = new NativeBackpressure(() => isWritable)
  backpressure.note(false)
  const first = backpressure.writable
  vi.advanceTimersByTime(1_000)
  await first
  const second = backpressure.writable
  expect(second).toBeInstanceOf(Promise)
  expect(second).not.toBe(first)
  isWritable = true
  vi.advanceTimersByTime(1_000)
  await second
  expect(backpressure.writable).toBeUndefined()
  expect(vi.getTimerCount()).toBe(0)
})
