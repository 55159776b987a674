import { expect, it, onTestFinished } from 'vitest'
import { historyOf } from 'webmq-conformance'
import { MemoryBroker } from '../src/adapters/brokers/memory/broker.js'
import { ApiServer } from './api-server.js'

/** A server with a broker that its program has made. */
async function start(...rules: readonly string[]): Promise<ApiServer> {
  const options = { dedupeWindowMs: 60_000, dedupeMaxIds: 1_000, ...historyOf(...rules) }
  const server = await ApiServer.start({ broker: new MemoryBroker(options) })
  onTestFinished(() => server.server.stop())
  return server
}

it('has history and streams of the keys that the broker says it logs, whatever the options of the server', async () => {
  const server = await start('logged.#=100')
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
  const server = await start()
  await expect(server.server.stream('logged.story')).rejects.toMatchObject({ code: 'E_UNSUPPORTED' })
})
