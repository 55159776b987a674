import { expect, it, onTestFinished, vi } from 'vitest'
import { WebMQClient } from 'webmq-client'
import { createServer } from 'webmq-server'
import { WebSocket } from 'ws'
import { Relay } from './relay.js'

const COUNT = 4_000
const PAYLOAD_BYTES = 4_000
/** Below the bytes that may wait in a client. */
const BATCH = 100
const TIMEOUT_MS = 60_000

it('is closed with 4008 when it reads nothing, and is then replayed what it has not read', async () => {
  const server = createServer({
    port: 0,
    logLevel: 'silent',
    maxPayloadBytes: 2 * PAYLOAD_BYTES,
    maxOutboxBytes: 16 * PAYLOAD_BYTES,
    historyMaxBytes: 2 * COUNT * PAYLOAD_BYTES,
  })
  const { url, port } = await server.start()
  onTestFinished(() => server.stop({ drainMs: 0 }))
  const relay = await Relay.start(() => port)
  onTestFinished(() => relay.stop())
  const listener = new WebMQClient({ url: relay.url, WebSocket, reconnect: { minMs: 5 } })
  const publisher = new WebMQClient({ url, WebSocket })
  for (const client of [listener, publisher]) onTestFinished(() => client.close({ flushMs: 0 }))
  const numbers: number[] = []
  const gaps: unknown[] = []
  listener.on('gap', (gap) => gaps.push(gap))
  await listener.listen('slow.#', (payload) => numbers.push((payload as { number: number }).number)).ready
  relay.inflict('stall')
  const filling = 'x'.repeat(PAYLOAD_BYTES)
  const publishFrom = (first: number) =>
    Array.from({ length: BATCH }, (_, index) => publisher.publish('slow.1', { number: first + index, filling }))
  for (let number = 0; number < COUNT; number += BATCH) await Promise.all(publishFrom(number))
  await vi.waitFor(() => expect(server.stats().transport.slowConsumerCount).toBe(1), { timeout: TIMEOUT_MS })
  expect(numbers.length).toBeLessThan(COUNT)
  relay.resume()
  await vi.waitFor(() => expect(numbers.length).toBeGreaterThanOrEqual(COUNT), { timeout: TIMEOUT_MS })
  expect(numbers).toEqual(Array.from({ length: COUNT }, (_, number) => number))
  expect(gaps).toEqual([])
})
