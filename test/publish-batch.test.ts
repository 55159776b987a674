import { expect, it, vi } from 'vitest'
import { startClient, startServer } from './live.js'

it.each(['native', 'ws', 'uws'] as const)(
  'a batch reaches everyone who listens, in order: transport %s',
  async (transport) => {
    const { server, url } = await startServer({ transport })
    const listeners = await Promise.all(
      ['prices.*', '#', 'prices.even'].map(async (pattern) => {
        const { client } = startClient(url)
        const payloads: unknown[] = []
        await client.listen(pattern, (payload) => payloads.push(payload)).ready
        return payloads
      }),
    )
    const all = Array.from({ length: 2_000 }, (_, n) => n)
    const batch = all.map((n) => ({ key: n % 2 === 0 ? 'prices.even' : 'prices.odd', payload: n }))
    const results = await server.publishBatch(batch)
    const offsets = results.map(({ position = '' }) => Number.parseInt(position.split(':')[1] ?? '', 36))
    expect(offsets).toEqual(all.map((n) => n + 1))
    await vi.waitFor(() => expect(listeners.map(({ length }) => length)).toEqual([2_000, 2_000, 1_000]))
    expect(listeners).toEqual([all, all, all.filter((n) => n % 2 === 0)])
  },
)
