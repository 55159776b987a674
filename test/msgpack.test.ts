import { describe, expect, it, vi } from 'vitest'
import type { ClientOptions } from 'webmq-client'
import { msgpack } from 'webmq-client/msgpack'
import { startClient, startServer } from './live.js'

describe.each(['native', 'ws', 'uws'] as const)('MessagePack through the server, transport %s', (transport) => {
  async function listener(url: string, options: Partial<ClientOptions>) {
    const { client } = startClient(url, options)
    const payloads: unknown[] = []
    await client.listen('#', (payload) => payloads.push(payload)).ready
    return { client, payloads }
  }

  it('reaches clients with the codec as what was published, live and replayed, and others as bytes', async () => {
    const { server, url } = await startServer({ transport })
    const inProcess: unknown[] = []
    await server.listen('#', (payload) => inProcess.push(payload)).ready
    const packed = await listener(url, { codec: msgpack })
    const plain = await listener(url, {})

    const order = { id: 7, at: new Date(1_500_000_000_123), bytes: Uint8Array.of(0, 10, 255), text: 'grüß' }
    await packed.client.publish('orders.7', order)
    await plain.client.publish('orders.8', { json: true })
    await server.publish('orders.9', msgpack.encode('from the server'))

    const bytes = (payload: unknown) => new Uint8Array(msgpack.encode(payload))
    const expected = [bytes(order), { json: true }, bytes('from the server')]
    await vi.waitFor(() => expect(packed.payloads).toHaveLength(3))
    expect(packed.payloads).toEqual([order, { json: true }, 'from the server'])
    await vi.waitFor(() => expect(plain.payloads).toEqual(expected))
    await vi.waitFor(() => expect(inProcess).toEqual(expected))

    const late: unknown[] = []
    await packed.client.listen('orders.*', (payload) => late.push(payload), { last: 3 }).ready
    await vi.waitFor(() => expect(late).toEqual([order, { json: true }, 'from the server']))
  })
})
