import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { Heartbeat } from './heartbeat.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

function start(intervalMs = 25_000, timeoutMs = 10_000) {
  const events: string[] = []
  const heartbeat: Heartbeat = new Heartbeat(intervalMs, timeoutMs, {
    sendPing: () => {
      events.push(`ping ${Date.now() - startedAtMs}`)
      heartbeat.sent()
    },
    onTimeout: () => events.push(`timeout ${Date.now() - startedAtMs}`),
  })
  const startedAtMs = Date.now()
  return { heartbeat, events }
}

it('pings after the interval without sending, and without hearing', () => {
  const { heartbeat, events } = start()
  vi.advanceTimersByTime(20_000)
  heartbeat.alive()
  vi.advanceTimersByTime(5_000)
  expect(events).toEqual(['ping 25000'])
  heartbeat.alive()
  vi.advanceTimersByTime(20_000)
  heartbeat.sent()
  vi.advanceTimersByTime(5_000)
  expect(events).toEqual(['ping 25000', 'ping 50000'])
})

it('does not ping while both sides are busy', () => {
  const { heartbeat, events } = start()
  for (let second = 0; second < 100; second++) {
    heartbeat.sent()
    heartbeat.alive()
    vi.advanceTimersByTime(1_000)
  }
  expect(events).toEqual([])
})

it('times out only after a ping went unanswered', () => {
  const { events } = start()
  vi.advanceTimersByTime(34_999)
  expect(events).toEqual(['ping 25000'])
  vi.advanceTimersByTime(1)
  expect(events).toEqual(['ping 25000', 'timeout 35000'])
})

it('takes anything for an answer', () => {
  const { heartbeat, events } = start()
  vi.advanceTimersByTime(30_000)
  heartbeat.alive()
  vi.advanceTimersByTime(10_000)
  expect(events).toEqual(['ping 25000'])
})

it('asks before it gives up when its timer was held back', () => {
  // Symptom: a hidden page was taken for disconnected when it came back. Cause: browsers hold timers of hidden pages back.
  const { events } = start()
  vi.setSystemTime(Date.now() + 600_000)
  vi.advanceTimersByTime(25_000)
  expect(events).toEqual(['ping 625000'])
})

it('probes at once, and allows less time', () => {
  const { heartbeat, events } = start()
  heartbeat.probe(2_000)
  vi.advanceTimersByTime(2_000)
  expect(events).toEqual(['ping 0', 'timeout 2000'])
})

it('does nothing by itself with interval 0', () => {
  const { events } = start(0)
  vi.advanceTimersByTime(1_000_000)
  expect(events).toEqual([])
})

it('leaves no timer behind when it is stopped', () => {
  const { heartbeat } = start()
  heartbeat.stop()
  expect(vi.getTimerCount()).toBe(0)
})
