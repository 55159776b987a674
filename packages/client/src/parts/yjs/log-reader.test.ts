import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import * as Y from 'yjs'
import { createTestClient } from '../../dev/testing/index.js'
import { LogReader, type LogReaderContext } from './log-reader.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

// A server that said `more` with each page and moved its position was asked again at once, for ever.
it('pauses after a page without messages', async () => {
  const { client } = createTestClient()
  let readCount = 0
  const context = {
    client,
    snapshots: { read: async () => [] },
    doc: new Y.Doc(),
    key: 'doc.updates',
    maxBytes: 1_000,
    history: async () => {
      readCount++
      if (readCount > 1_000) throw new Error('asked without a pause')
      return { messages: [], more: true, position: `e:${readCount}.AAAAA` }
    },
    onReading: () => undefined,
    onRead: () => undefined,
    onFailed: () => undefined,
    report: () => undefined,
  } as unknown as LogReaderContext
  const reader = new LogReader(context)
  await vi.advanceTimersByTimeAsync(10_000)
  expect(readCount).toBeGreaterThan(10)
  expect(readCount).toBeLessThan(30)
  await reader.stop()
})
