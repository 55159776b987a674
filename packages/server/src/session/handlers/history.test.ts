import { describe, expect, it } from 'vitest'
import { WebMQError } from 'webmq-client/protocol'
import { FakeServer } from '../../../test/fake-server.js'
import { memoryOptions } from '../../../test/memory-options.js'
import { SlowBroker } from '../../../test/slow-broker.js'
import { MemoryBroker } from '../../brokers/memory/broker.js'
import type { ServerOptions } from '../../options/options.js'

async function start(options: ServerOptions, ...texts: readonly string[]) {
  const fake = await FakeServer.start(options)
  const positions: string[] = []
  for (const text of texts) positions.push((await fake.server.publish('k', text)).position ?? 'none')
  const client = await fake.connect()
  const ask = async (range: object) => {
    client.clear()
    client.send({ verb: 'history', id: 'h', key: 'k', ...range })
    await fake.settled()
    const [ok] = client.received('ok')
    const messages = client.received('message')
    expect(client.messages.map(({ verb }) => verb)).toEqual(['ok', ...messages.map(() => 'message')])
    expect(ok?.replayed).toBe(messages.length)
    expect(messages.every(({ replayed }) => replayed)).toBe(true)
    return { ok, texts: messages.map(({ payload }) => JSON.parse(payload as string) as string) }
  }
  return { fake, client, positions, ask }
}

describe('history', () => {
  it('gives the newest messages, in order, and where they end', async () => {
    const { ask, positions } = await start({}, 'a', 'b', 'c')
    expect(await ask({ last: 2 })).toMatchObject({ ok: { position: positions[2] }, texts: ['b', 'c'] })
    expect((await ask({})).texts).toEqual(['a', 'b', 'c'])
    expect((await ask({})).ok).not.toHaveProperty('more')
  })

  it('gives pages from a place on, each with where to ask on', async () => {
    const { ask, positions } = await start({}, 'a', 'b', 'c', 'd')
    const first = await ask({ since: positions[0], limit: 2 })
    expect(first).toMatchObject({ ok: { position: positions[2], more: true }, texts: ['b', 'c'] })
    const second = await ask({ since: first.ok?.position, limit: 2 })
    expect(second).toMatchObject({ ok: { position: positions[3] }, texts: ['d'] })
    expect(second.ok).not.toHaveProperty('more')
  })

  it('gives the newest first when asked to', async () => {
    const { ask, positions } = await start({}, 'a', 'b', 'c', 'd')
    expect((await ask({ reverse: true, last: 3 })).texts).toEqual(['d', 'c', 'b'])
    expect((await ask({ reverse: true, since: positions[1] })).texts).toEqual(['d', 'c'])
  })

  it('gives what was logged within a time', async () => {
    const { ask } = await start({}, 'a', 'b')
    expect((await ask({ rewindMs: 60_000 })).texts).toEqual(['a', 'b'])
  })

  it('says what is missing: gone from the log, or never logged', async () => {
    const { ask, positions } = await start({ historyMaxMessages: 2 }, 'a', 'b', 'c', 'd')
    expect(await ask({ since: positions[0] })).toMatchObject({ ok: { gap: 'history-expired' }, texts: ['c', 'd'] })
    const other = await start({ history: ['other=5'] }, 'a')
    expect(await other.ask({ last: 5 })).toMatchObject({ ok: { gap: 'no-history' }, texts: [] })
  })

  it('is refused while the node is behind, on a connection that stays', async () => {
    const broker = new SlowBroker(new MemoryBroker(memoryOptions()))
    const fake = await FakeServer.start({}, { broker })
    const client = await fake.connect()
    client.clear()
    broker.failure = new WebMQError('E_NODE_BEHIND')
    client.send({ verb: 'history', id: 'h', key: 'k', last: 1 })
    await fake.settled()
    broker.release()
    await fake.settled()
    expect(client.messages).toMatchObject([{ verb: 'error', id: 'h', code: 'E_NODE_BEHIND', retryable: true }])
    expect(client.closure).toBeUndefined()
  })

  it('is refused where there is no log', async () => {
    const { fake, client } = await start({ historyMaxMessages: 0 })
    client.clear()
    client.send({ verb: 'history', id: 'h', key: 'k' })
    await fake.settled()
    expect(client.received('error')).toMatchObject([{ id: 'h', code: 'E_UNSUPPORTED' }])
  })
})

describe('server.history', () => {
  it('gives what the log holds of a key, as it was published', async () => {
    const { fake, positions } = await start({}, 'a', 'b', 'c')
    await fake.server.publish('k', Uint8Array.of(1, 2))
    const { messages, position, hasMore } = await fake.server.history('k', { limit: 2 })
    expect(messages).toMatchObject([{ key: 'k', payload: 'c', position: positions[2] }, { key: 'k' }])
    expect(messages[1]?.payload).toEqual(Uint8Array.of(1, 2))
    expect([position, hasMore]).toEqual([messages[1]?.position, false])
    const page = await fake.server.history('k', { since: positions[0] ?? '', limit: 1 })
    expect(page).toMatchObject({ messages: [{ payload: 'b' }], position: positions[1], hasMore: true })
    const newest = await fake.server.history('k', { reverse: true, limit: 3 })
    expect(newest.messages.map(({ payload }) => payload)).toEqual([Uint8Array.of(1, 2), 'c', 'b'])
  })

  it('refuses what is no key, no position, and a broker without a log', async () => {
    const { fake } = await start({})
    await expect(fake.server.history('a.*')).rejects.toMatchObject({ code: 'E_KEY_INVALID' })
    await expect(fake.server.history('a', { since: '?' })).rejects.toMatchObject({ code: 'E_POSITION_INVALID' })
    const without = await start({ historyMaxMessages: 0 })
    await expect(without.fake.server.history('a')).rejects.toMatchObject({ code: 'E_UNSUPPORTED' })
  })
})
