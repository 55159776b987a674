import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { WebMQClient } from '../../core/client.js'
import type { ClientOptions } from '../../core/client-options.js'
import { createTestServer } from '../testing/index.js'
import { devtools } from './index.js'
import { Traffic } from './traffic.js'
import { TROUBLES, Trouble } from './trouble.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

async function start(options: Partial<ClientOptions> = {}) {
  const server = createTestServer({ heartbeatMs: 1_000_000 })
  const traffic = new Traffic()
  const reopen = vi.fn(() => void client.open())
  const trouble = new Trouble({
    sent: (frame) => traffic.sent(frame),
    received: (frame) => traffic.received(frame),
    down: () => traffic.down(),
    reopen,
  })
  const WebSocket = trouble.watch(() => server.WebSocket)
  const client = new WebMQClient({ url: server.url, WebSocket, ...options })
  client.on('error', () => undefined)
  const payloads: unknown[] = []
  const gaps: string[] = []
  client.listen('news.#', (payload) => payloads.push(payload))
  client.on('gap', ({ reason }) => gaps.push(reason))
  await vi.advanceTimersByTimeAsync(0)
  return { server, traffic, trouble, reopen, client, payloads, gaps }
}

describe('a rehearsed trouble', () => {
  it.each(TROUBLES)('%s is over by itself, and the client works again', async (name) => {
    const { client, payloads, server, trouble } = await start({ token: () => 'any' })
    trouble.start(name)
    await vi.advanceTimersByTimeAsync(120_000)
    expect([client.state, trouble.isOn(name)]).toEqual(['connected', false])
    server.publish('news.today', 'after it')
    await vi.advanceTimersByTimeAsync(0)
    expect(payloads).toEqual(['after it'])
  })

  it('opens a client that a refused token has closed for good', async () => {
    const { client, reopen, trouble } = await start()
    trouble.start('reject')
    await vi.advanceTimersByTimeAsync(3_000)
    expect([client.state, client.status.lastError?.code]).toEqual(['closed', 'E_TOKEN_INVALID'])
    await vi.advanceTimersByTimeAsync(5_000)
    expect([client.state, reopen.mock.calls.length]).toEqual(['connected', 1])
  })

  it('loses nothing when silence ends before anybody has noticed it', async () => {
    const { gaps, payloads, server, trouble } = await start({ heartbeatTimeoutMs: 1_000_000 })
    server.publish('news.today', 1)
    await vi.advanceTimersByTimeAsync(0)
    trouble.start('silence')
    server.publish('news.today', 2)
    await vi.advanceTimersByTimeAsync(62_000)
    expect([payloads, gaps]).toEqual([[1, 2], []])
  })

  it('makes one gap per listen when history expires', async () => {
    const { gaps, server, trouble } = await start()
    trouble.start('expire')
    await vi.advanceTimersByTimeAsync(2_000)
    expect(gaps).toEqual(['history-expired'])
    server.drop()
    await vi.advanceTimersByTimeAsync(5_000)
    expect(gaps).toEqual(['history-expired'])
  })
})

describe('the traffic', () => {
  it('has the listens with their positions, and is bounded', async () => {
    const { server, traffic } = await start()
    for (let count = 0; count < 300; count++) server.publish('news.today', count)
    await vi.advanceTimersByTimeAsync(0)
    expect([...traffic.listens.values()]).toMatchObject([{ pattern: 'news.#', state: 'active', messageCount: 300 }])
    expect(traffic.listens.get('news.#')?.position).toBe('epoch1:8c.AAAAA')
    expect(traffic.recent).toHaveLength(100)
    server.gap('news.#', 'slow-consumer')
    await vi.advanceTimersByTimeAsync(0)
    expect(traffic.listens.get('news.#')).toMatchObject({ gapCount: 1, lastGap: 'slow-consumer' })
  })
})

it('is nothing where there is no page', () => {
  const { url, WebSocket } = createTestServer()
  const client = new WebMQClient({ url, WebSocket })
  expect(devtools({ client })()).toBeUndefined()
  expect(client.state).toBe('idle')
})
