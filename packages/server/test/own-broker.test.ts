import { expect, it, onTestFinished, vi } from 'vitest'
import { historyOf, retaining } from 'webmq-conformance'
import { MemoryBroker } from '../src/adapters/brokers/memory/broker.js'
import type { ServerOptions } from '../src/index.js'
import type { HistoryOptions } from '../src/kernel/ports/history-rules.js'
import { ApiServer } from './api-server.js'

/** A server with a broker that its program has made. */
async function start(history: HistoryOptions, options: ServerOptions = {}): Promise<ApiServer> {
  const broker = new MemoryBroker({ dedupeWindowMs: 60_000, dedupeMaxIds: 1_000, ...history })
  const server = await ApiServer.start({ broker, ...options })
  onTestFinished(() => server.server.stop())
  return server
}

it('has history and streams of the keys that the broker says it logs, whatever the options of the server', async () => {
  const server = await start(historyOf('logged.#=100'))
  const { json } = await server.ask('/api/publish', { body: { key: 'logged.a', payload: 1 } })
  expect(json).toHaveProperty('position')
  expect(await server.ask('/api/history?key=logged.a&last=5')).toMatchObject({
    json: { messages: [{ key: 'logged.a', payload: 1 }] },
  })
  const writer = await server.server.stream('logged.story')
  await writer.append('once')
  await writer.end()
  await expect(server.server.stream('other.story')).rejects.toMatchObject({ code: 'E_UNSUPPORTED' })
})

it('has no streams where the broker logs nothing', async () => {
  const server = await start(historyOf())
  await expect(server.server.stream('logged.story')).rejects.toMatchObject({ code: 'E_UNSUPPORTED' })
})

// Symptom: a stream was gone from its retained key, or could not be read at all. Cause: the server's option said which keys
// the broker of somebody else retains.
it.each([
  ['broker', 'kept.story', 'once'],
  ['option', 'other.story', undefined],
])('has the streams of keys that the broker says it retains: a key of its %s', async (_, key, text) => {
  const history = { ...retaining(historyOf('#=20'), 'kept.#'), historyMaxMessages: 20 }
  const server = await start(history, { retain: ['other.#'] })
  const writer = await server.server.stream(key)
  await writer.append('once')
  await writer.end()
  const kinds = async () => (await server.server.history(key)).messages.map(({ stream }) => stream?.split(':')[2])
  await vi.waitFor(async () => expect(await kinds()).toEqual(['text']))
  for (let index = 0; index < 50; index++) await server.server.publish('more', index)
  const { status, json } = await server.ask(`/api/streams?key=${key}`)
  expect([status, json.text]).toEqual([200, text])
})
