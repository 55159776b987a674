import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createRequests, type Reply } from './requests.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

function start() {
  const requests = createRequests({ isLive: true, bufferedBytes: 0, send: () => undefined }, 10_000)
  const replies: Reply[] = []
  requests.send(
    (id) => `listen ${id} a`,
    (reply) => replies.push(reply),
  )
  return { requests, replies }
}

// Symptom: a reader of 200 kB/s with eight listens got nothing more of its replays, without an error. Cause: an answer
// behind 2 MB of other replays came after its request had timed out, and was dropped with its messages.
it('waits for an answer that is behind other messages', () => {
  const { requests, replies } = start()
  for (let second = 0; second < 60; second++) {
    vi.advanceTimersByTime(1_000)
    requests.received()
  }
  expect(replies).toEqual([])
  requests.answer({ verb: 'ok', id: 'l1' })
  expect(replies).toEqual([{ verb: 'ok', id: 'l1' }])
  vi.advanceTimersByTime(60_000)
  expect(replies).toHaveLength(1)
})

it('gives up when nothing arrives in its time', () => {
  const { requests, replies } = start()
  vi.advanceTimersByTime(9_000)
  requests.received()
  vi.advanceTimersByTime(10_999)
  expect(replies).toEqual([])
  vi.advanceTimersByTime(1)
  expect(replies).toMatchObject([{ code: 'E_TIMEOUT' }])
})
