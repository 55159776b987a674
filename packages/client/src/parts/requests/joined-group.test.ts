import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createTestWebSocket, type ServerEnd } from '../../dev/testing/test-websocket.js'
import { WebMQClient } from '../../index.js'
import { respond, work } from './index.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const settle = () => vi.advanceTimersByTimeAsync(0)

const WELCOME = {
  protocol: 'webmq.v1',
  auth: 'none',
  session: 's',
  node: 'n',
  version: '0',
  heartbeatMs: 0,
  limits: {},
}

/** A client of a server that answers nothing by itself. */
async function meet() {
  const ends: ServerEnd[] = []
  const received: string[] = []
  const WebSocket = createTestWebSocket((end) => {
    ends.push(end)
    end.send(`welcome\n${JSON.stringify(WELCOME)}`)
    return { onReceive: (data) => received.push(new TextDecoder().decode(data)), onClosed: () => undefined }
  })
  const client = new WebMQClient({ url: 'ws://test.invalid/ws', WebSocket, random: () => 0.5 })
  await client.connect()
  const say = async (frame: string) => {
    ends.at(-1)?.send(frame)
    await settle()
  }
  const accept = () => say(`ok ${received.at(-1)?.split(' ')[1]}`)
  return { client, ends, received, say, accept }
}

// A worker that was closed lost messages that the server had handed to it: it was forgotten before the server knew.
it('handles what comes before the server knows that it has gone', async () => {
  const { client, received, say, accept } = await meet()
  const handled: unknown[] = []
  const join = () => work('jobs', (payload: unknown) => handled.push(payload), { group: 'g', client })
  const member = join()
  await settle()
  await accept()
  const closed = member.close()
  await settle()
  expect(received.at(-1)).toMatch(/^unlisten \S+ jobs group=g$/)
  await say('task g jobs jobs\n1')
  await accept()
  await closed
  await say('task g jobs jobs\n2')
  expect(handled).toEqual([1])
})

it('may be joined again before the server knows that it has gone', async () => {
  const { client, received, say, accept } = await meet()
  const handled: unknown[] = []
  const first = work('jobs', () => handled.push('first'), { group: 'g', client })
  await settle()
  await accept()
  void first.close()
  const left = received.at(-1)?.split(' ')[1]
  const second = work('jobs', () => handled.push('second'), { group: 'g', client })
  await settle()
  expect(received.at(-1)).toMatch(/^listen \S+ jobs group=g$/)
  await say(`ok ${left}`)
  await accept()
  await second.ready
  await say('task g jobs jobs\n1')
  expect(handled).toEqual(['second'])
})

// The reply to one request answered another: nodes gave the same ids.
it('replies on the connection that brought the request alone', async () => {
  const { client, ends, received, say, accept } = await meet()
  const waiting: (() => void)[] = []
  respond('ask', (payload: unknown) => new Promise((resolve) => waiting.push(() => resolve(payload))), { client })
  await settle()
  await accept()
  await say('task responders ask ask request=q1 within=9000\n1')
  ends[0]?.close(1006)
  await vi.advanceTimersByTimeAsync(600)
  await accept()
  await say('task responders ask ask request=q1 within=9000\n2')
  received.length = 0
  for (const reply of waiting) reply()
  await settle()
  expect(received).toEqual(['reply q1\n2'])
})
