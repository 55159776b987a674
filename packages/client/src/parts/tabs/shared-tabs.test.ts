import { afterEach, expect, it, vi } from 'vitest'
import { WebMQClient } from '../../core/client.js'
import { createTestServer } from '../../dev/testing/index.js'
import { sharedTabs } from './index.js'

afterEach(() => vi.unstubAllGlobals())

// Symptom: in a sandboxed frame, or where the user forbids that pages store anything, the client never connected.
it('has a connection of its own where the page may not use its Web Locks', async () => {
  const request = () => Promise.reject(new DOMException('Access to the Locks API is denied', 'SecurityError'))
  vi.stubGlobal('navigator', { locks: { request } })
  const server = createTestServer()
  const tabs = sharedTabs({ WebSocket: server.WebSocket })
  const client = new WebMQClient({ url: server.url, WebSocket: tabs, reconnect: { minMs: 1, maxMs: 1 } })
  await client.connect()
  expect(tabs.status).toMatchObject({ mode: 'alone', reason: 'the page has no Web Locks' })
  expect(server.connectionCount).toBe(1)
  await client.close()
})
