import { describe, expect, it, vi } from 'vitest'
import { WebMQError } from 'webmq-client/protocol'
import { FakeServer } from '../../../../test/fake-server.js'
import { memoryOptions } from '../../../../test/memory-options.js'
import { SlowBroker } from '../../../../test/slow-broker.js'
import { MemoryBroker } from '../../../adapters/brokers/memory/broker.js'
import type { ServerOptions } from '../../../doors/options/server-options.js'

async function start(options: ServerOptions, ...texts: readonly string[]) {
  const fake = await FakeServer.start(options)
  const positions: string[] = []
  for (const text of texts) positions.push((await fake.server.publish('k', text)).position ?? 'none')
  const client = await fake.connect()
  const ask = async (range: object) => {
    client.clear()
    client.send({ verb: 'history', id: 'h', key: 'k', ...range })
    await vi.waitFor(() => expect(client.received('ok')).toHaveLength(1))
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

  it('says more after a limit that was served in full while the log goes on; the next page may be empty [P-6.11]', async () => {
    const { fake, ask, positions } = await start({}, 'a', 'b')
    await fake.server.publish('other', '1')
    const first = await ask({ since: positions[0], limit: 1 })
    expect(first).toMatchObject({ ok: { position: positions[1], more: true }, texts: ['b'] })
    const second = await ask({ since: first.ok?.position, limit: 1 })
    expect(second.texts).toEqual([])
    expect(second.ok).not.toHaveProperty('more')
  })

  it('continues the last N up to the end of the log of that moment, beyond N [P-6.11]', async () => {
    const { fake, ask } = await start({}, ...Array.from({ length: 800 }, (_, index) => `${index}`))
    const first = await ask({ last: 600 })
    expect([first.texts[0], first.texts.length, first.ok?.more]).toEqual(['200', 500, true])
    await fake.server.publish('k', 'later')
    const second = await ask({ since: first.ok?.position })
    expect([second.texts[0], second.texts.at(-1), second.texts.length]).toEqual(['700', 'later', 101])
    expect(second.ok).not.toHaveProperty('more')
  })

  it('says more when reverse leaves older messages out, and names the end of the log [P-6.11]', async () => {
    const { fake, ask } = await start({}, ...Array.from({ length: 800 }, (_, index) => `${index}`))
    const position = (await fake.server.publish('other', '1')).position
    const all = await ask({ reverse: true, last: 600 })
    expect([all.texts[0], all.texts.length, all.ok?.more, all.ok?.position]).toEqual(['799', 500, true, position])
    const page = await ask({ reverse: true, last: 500 })
    expect([page.texts[0], page.texts.length, page.ok?.position]).toEqual(['799', 500, position])
    expect(page.ok).not.toHaveProperty('more')
  })

  it('gives the newest first also when they lie behind more messages than one turn looks at [P-6.11]', async () => {
    // Symptom: the oldest of the last N, newest first. Cause: a read looked at 50,000 messages, then stopped.
    const history = ['#=1000000']
    const { fake, ask, positions } = await start({ history, historyMaxMessages: 200_000 }, 'old')
    await fake.server.publishBatch(Array.from({ length: 60_000 }, () => ({ key: 'other', payload: 0 })))
    await fake.server.publish('k', 'new')
    const { ok, texts } = await ask({ reverse: true, last: 2 })
    expect(texts).toEqual(['new', 'old'])
    expect(ok?.position).not.toBe(positions[0])
    expect(ok).not.toHaveProperty('more')
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
