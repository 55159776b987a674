import { expect, it } from 'vitest'
import { iterate } from '../iterate/index.js'
import { createTestClient, createTestServer } from './index.js'

// Without fake timers, as in most tests of apps.

it('delivers messages of one client to the others', async () => {
  const server = createTestServer()
  const { client: ann } = createTestClient({ server })
  const { client: bob } = createTestClient({ server })
  const iteration = iterate(bob, 'chat.*')
  await iteration.subscription.ready
  await ann.publish('chat.1', { text: 'hi' })
  const { value } = await iteration[Symbol.asyncIterator]().next()
  expect(value).toMatchObject({ key: 'chat.1', payload: { text: 'hi' } })
  expect(server.connectionCount).toBe(2)
  await Promise.all([ann.close(), bob.close()])
  expect(server.connectionCount).toBe(0)
})

it('shows received messages and patterns', async () => {
  const { client, server } = createTestClient()
  await client.listen('a.#', () => undefined).ready
  await client.publish('b', [1], { id: 'm' })
  expect(server.received).toEqual([
    { verb: 'listen', id: expect.any(String), pattern: 'a.#' },
    expect.objectContaining({ verb: 'publish', key: 'b', messageId: 'm' }),
  ])
  expect(server.patterns).toEqual(['a.#'])
  await client.close()
})

it('refuses as many messages as requested', async () => {
  const { client, server } = createTestClient()
  server.refuse('publish', 'E_FORBIDDEN')
  server.refuse('publish', 'E_BROKER_UNAVAILABLE')
  await expect(client.publish('a', 1)).rejects.toMatchObject({ code: 'E_FORBIDDEN' })
  await expect(client.publish('a', 1)).rejects.toMatchObject({ code: 'E_BROKER_UNAVAILABLE' })
  expect(await client.publish('a', 1)).toMatchObject({ position: 'epoch1:1' })
  await client.close()
})

it('keeps as many messages as configured', async () => {
  const server = createTestServer({ historyMaxMessages: 2 })
  for (const n of [1, 2, 3]) server.publish('a', n)
  const { client } = createTestClient({ server })
  expect(await client.listen('a', () => 1, { last: 5 }).ready).toMatchObject({ replayed: 2 })
  expect(await client.listen('a', () => 2, { since: 'epoch1:1' }).ready).toMatchObject({ recovered: true, replayed: 2 })
  expect(await client.listen('a', () => 3, { since: 'epoch1:0' }).ready).toMatchObject({
    gap: 'history-expired',
    replayed: 2,
  })
  await client.close()
})

it('refuses invalid messages, like a real server', async () => {
  const server = createTestServer({ verifyToken: (token) => (token === 'good' ? {} : undefined) })
  const { client } = createTestClient({ server, token: 'bad' })
  await expect(client.connect()).rejects.toMatchObject({ code: 'E_TOKEN_INVALID' })
  expect(client.state).toBe('closed')
})
