import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import * as Y from 'yjs'
import { createTestClient, createTestServer } from '../dev/testing/index.js'
import { acquire } from '../frameworks/stores/shared.js'
import { sharedTabs } from '../parts/tabs/index.js'
import { YjsProvider } from '../parts/yjs/index.js'

// Symptom: `close({ flushMs: Infinity })` rejected at once what it should wait for, and a document with `snapshotAfterMs: Infinity`
// wrote a snapshot at every change. Cause: a timer of more than 2^31 - 1 ms fires at once.

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const HOUR_MS = 3_600_000

it('lets `close` wait for an answer, however long', async () => {
  const { client, server } = createTestClient({ ackTimeoutMs: HOUR_MS })
  server.ignore('publish')
  const published = client.publish('a', 1)
  const closed = client.close({ flushMs: Infinity })
  await vi.advanceTimersByTimeAsync(5_000)
  server.drop()
  await vi.advanceTimersByTimeAsync(5_000)
  expect(await published).toMatchObject({ duplicate: false })
  await closed
})

it('is no time in which the server must answer: parts would not wait at all', () => {
  expect(() => createTestClient({ ackTimeoutMs: Infinity })).toThrow('ackTimeoutMs: at most 2147483647')
  expect(() => createTestClient({ lostAfterMs: Infinity, heartbeatTimeoutMs: Infinity })).not.toThrow()
})

it('keeps what a component has used, for as long as it says', async () => {
  const close = vi.fn()
  const [, release] = acquire({}, 'list', () => ({ close }), Infinity)
  release()
  await vi.advanceTimersByTimeAsync(HOUR_MS)
  expect(close).not.toHaveBeenCalled()
})

it('writes no snapshot of a document before its time', async () => {
  const server = createTestServer({ retain: ['d.snapshot.#'] })
  const { client } = createTestClient({ server })
  const doc = new Y.Doc()
  const provider = new YjsProvider(doc, 'd', { client, snapshotAfterMs: Infinity })
  await provider.whenSynced()
  doc.getText('text').insert(0, 'hi')
  await vi.advanceTimersByTimeAsync(60_000)
  const keys = server.received.flatMap((message) => (message.verb === 'publish' ? [message.key] : []))
  expect(keys).toContain('d.updates')
  expect(keys.filter((key) => key.startsWith('d.snapshot.'))).toEqual([])
  await provider.destroy()
  await client.close()
})

it('is no time in which the tab with the connection must answer', () => {
  expect(() => sharedTabs({ silentAfterMs: Infinity })).toThrow('silentAfterMs')
})
