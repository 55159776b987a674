import { beforeEach, expect, it, vi } from 'vitest'
import { createTestServer } from '../dev/testing/index.js'

// Another file of the same worker may have set up a client before. Texts of refusals are of the build for development.
beforeEach(async () => {
  vi.resetModules()
  await import('../development.js')
})

it('requires setup first', async () => {
  const { close, listen, publish, unlisten } = await import('../index.js')
  const { history } = await import('../parts/history/index.js')
  const message = 'option is not valid: call setup({ url }) first'
  expect(() => listen('a', () => undefined)).toThrow(message)
  await expect(publish('a', 1)).rejects.toThrow(message)
  await expect(history('a')).rejects.toThrow(message)
  await expect(unlisten('a')).rejects.toThrow(message)
  expect(await close()).toBeUndefined()
})

it('listens, publishes, reads the log, unlistens and closes', async () => {
  const { close, listen, publish, setup, unlisten } = await import('../index.js')
  const { history } = await import('../parts/history/index.js')
  const { iterate } = await import('../parts/iterate/index.js')
  const { WebSocket, url } = createTestServer()
  const client = setup({ url, WebSocket })
  const handled: unknown[] = []
  const handler = (payload: unknown) => handled.push(payload)
  await listen('chat.*', handler).ready
  const iterated = iterate('chat.*', { last: 0 })
  await iterated.subscription.ready
  await publish('chat.1', { text: 'hi' })
  expect((await history('chat.1')).messages.map(({ payload }) => payload)).toEqual([{ text: 'hi' }])
  await unlisten('chat.*', handler)
  await publish('chat.1', { text: 'again' }, { echo: true })
  expect(handled).toEqual([{ text: 'hi' }])
  expect((await iterated[Symbol.asyncIterator]().next()).value?.payload).toEqual({ text: 'hi' })
  await close()
  expect(client.state).toBe('closed')
})

it('closes the previous client when it is set up again', async () => {
  const { publish, setup } = await import('../index.js')
  const { WebSocket, url } = createTestServer()
  const first = setup({ url, WebSocket })
  await first.connect()
  const second = setup({ url, WebSocket })
  await publish('a', 1)
  expect([first.state, second.state]).toEqual(['closed', 'connected'])
  await second.close()
})

/** Hot module replacement sets up again: the listens of components that were not loaded again ended silently. */
it('moves the subscriptions to the new client when it is set up again', async () => {
  const { listen, setup } = await import('../index.js')
  const server = createTestServer()
  const first = setup({ url: server.url, WebSocket: server.WebSocket })
  const handled: unknown[] = []
  const subscription = listen('a', (payload) => handled.push(payload))
  const pending = listen('b', (payload) => handled.push(payload))
  await subscription.ready
  const waiting = listen('c', (payload) => handled.push(payload))
  const second = setup({ url: server.url, WebSocket: server.WebSocket })
  server.publish('a', 1)
  const { ready } = subscription
  expect(await ready).toMatchObject({ recovered: true, replayed: 1 })
  await Promise.all([pending.ready, waiting.ready])
  for (const key of ['a', 'b', 'c']) server.publish(key, key)
  await vi.waitFor(() => expect(handled).toEqual([1, 'a', 'b', 'c']))
  expect([first.state, server.connectionCount]).toEqual(['closed', 1])
  await subscription.close()
  await vi.waitFor(() => expect(server.patterns).toEqual(['b', 'c']))
  await second.close()
  const third = setup({ url: server.url, WebSocket: server.WebSocket })
  await pending.ready
  expect([third.state, subscription.state, pending.state]).toEqual(['connected', 'closed', 'active'])
  await Promise.all([pending.close(), waiting.close()])
  await third.close()
})

// Symptom: with a dev server that replaces modules, presence, states and the status of components stood still in silence.
it('shows what the new client has, after another setup', async () => {
  const { setup } = await import('../index.js')
  const { state } = await import('../parts/state/index.js')
  const { openStream, readStream } = await import('../parts/stream/index.js')
  const { statusStore } = await import('../frameworks/stores/status.js')
  const { enter, presenceStore } = await import('../frameworks/stores/presence.js')
  const server = createTestServer({ retain: ['prices.#'], verifyToken: (token) => (token === 'good' ? {} : undefined) })
  const { WebSocket, url } = server
  const random = () => 0
  const first = setup({ url, WebSocket, random, token: 'good' })
  first.on('error', () => undefined)
  const [prices, reader] = [state('prices.*'), readStream('answer')]
  const told: unknown[] = []
  const [status, present] = [statusStore(undefined), presenceStore(undefined, 'room')]
  status.subscribe(() => told.push(status.getSnapshot().state))
  present.subscribe(() => undefined)
  const leave = enter({}, undefined, 'room', { name: 'Ada' }, 0)
  const names = () => present.getSnapshot().members.map(({ data }) => (data as { name: string }).name)
  await Promise.all([prices.ready, reader.ready])
  await vi.waitFor(() => expect(names()).toEqual(['Ada']))

  // A client that has given up says nothing more.
  server.drop({ code: 4501 })
  await vi.waitFor(() => expect([first.state, told.at(-1)]).toEqual(['closed', 'closed']))
  const second = setup({ url, WebSocket, random, token: 'good' })
  await vi.waitFor(() => expect(told.at(-1)).toBe('connected'))
  server.presence.lapse()
  server.presence.enter('room', {}, { id: 'bob', data: { name: 'Bob' } })
  await vi.waitFor(() => expect(names().sort()).toEqual(['Ada', 'Bob']))
  leave()
  await vi.waitFor(() => expect(names()).toEqual(['Bob']))

  server.gap('prices.*')
  server.publish('prices.a', 1)
  await vi.waitFor(() => expect([prices.get('prices.a'), prices.isStale]).toEqual([1, false]))
  server.gap('answer')
  const writer = await openStream('answer')
  await writer.append('hi')
  await writer.end()
  expect(await reader.text()).toBe('hi')
  prices.close()
  reader.close()
  await second.close()
})
