import { expect, it, vi } from 'vitest'
import type { ErrorCode } from '../../protocol/errors.js'
import { createTestServer } from '../testing/index.js'
import { explain } from './explain.js'

/** A page for production has them short. */
it.each<[ErrorCode, string, string]>([
  ['E_CONNECT_FAILED', 'connectTimeoutMs 2000', 'not within 2000 ms (connectTimeoutMs)'],
  ['E_DISCONNECTED', 'pageshow', 'page was restored from the back/forward cache, and browsers end its connection'],
  ['E_UNAUTHENTICATED', 'token', 'set the option `token`'],
  ['E_QUEUE_FULL', '16384 in flight', '16384 publishes wait for answers: await some before you publish more'],
  ['E_QUEUE_FULL', 'bufferedAmount 9', '9 bytes wait for the network: await publishes before you send more'],
  ['E_TIMEOUT', 'a-1 unsent', 'a-1 was not sent, because there was no connection in time (offlineQueue.maxAgeMs)'],
  ['E_PAYLOAD_TOO_LARGE', '101 > 100', '101 bytes, at most 100: a limit of the server, for payloads --max-payload'],
  [
    'E_OPTION_INVALID',
    'url htp://a',
    'url htp://a: give ws://, wss://, http:// or https://, or on a page a path such as /ws',
  ],
  ['E_CLOSED', 'by close()', 'by close(); open() opens it again'],
  ['E_CLOSED', '4501 E_TOKEN_INVALID, not valid', '4501 E_TOKEN_INVALID, not valid; open() opens it again'],
  ['E_CLOSED', 'another', 'another'],
])('makes a sentence of %s "%s"', (code, detail, sentence) => {
  expect(explain(code, detail)).toBe(sentence)
})

it('says how long the first publish of a full queue has waited', async () => {
  vi.resetModules()
  const { WebMQClient } = await import('../../development.js')
  const server = createTestServer()
  server.isUp = false
  const offlineQueue = { maxMessages: 2 }
  const client = new WebMQClient({ url: 'ws://full.invalid/ws', WebSocket: server.WebSocket, offlineQueue })
  const waiting = [1, 2].map((payload) => client.publish('a', payload).catch(() => undefined))
  await expect(client.publish('a', 3)).rejects.toThrow(
    'offline queue is full: maxMessages 2, the first has waited for 0 s',
  )
  await client.close()
  await Promise.all(waiting)
})
