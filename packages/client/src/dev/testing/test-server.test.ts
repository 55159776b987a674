import { expect, it, vi } from 'vitest'
import type { WebMQClient } from '../../core/client.js'
import { iterate } from '../../parts/iterate/index.js'
import { request, respond, work } from '../../parts/requests/index.js'
import { WebMQError } from '../../protocol/index.js'
import { createTestClient, createTestServer } from './index.js'

// Without fake timers, as in most tests of apps.

it('delivers messages of one client to the others', async () => {
  const server = createTestServer()
  const { client: ann } = createTestClient({ server })
  const { client: bob } = createTestClient({ server })
  const iteration = iterate('chat.*', { client: bob })
  await iteration.subscription.ready
  await ann.publish('chat.1', { text: 'hi' })
  const { value } = await iteration[Symbol.asyncIterator]().next()
  expect(value).toMatchObject({ key: 'chat.1', payload: { text: 'hi' } })
  expect(server.connectionCount).toBe(2)
  await Promise.all([ann.close(), bob.close()])
  expect(server.connectionCount).toBe(0)
})

it('gives each message to one member of a queue group, and to every listener', async () => {
  const server = createTestServer({ limits: { maxListensPerConnection: 2 } })
  const clients = ['ann', 'bob'].map((name) => ({ name, ...createTestClient({ server }) }))
  const seen: (readonly [who: string, job: unknown])[] = []
  for (const { name, client } of clients) {
    await work('jobs.*', (job) => seen.push([name, job]), { client, group: 'workers' }).ready
  }
  const [ann, bob] = clients.map(({ client }) => client) as [WebMQClient, WebMQClient]
  await ann.listen('jobs.#', (job) => seen.push(['all', job])).ready
  await expect(ann.listen('more', () => undefined).ready).rejects.toMatchObject({ code: 'E_LISTEN_LIMIT' })
  for (const job of [1, 2]) await bob.publish('jobs.a', job)
  server.publish('jobs.b', new Uint8Array([3]))
  await vi.waitFor(() => expect(seen).toHaveLength(6))
  expect(seen.filter(([who]) => who === 'all')).toHaveLength(3)
  expect(seen.filter(([who]) => who !== 'all')).toEqual([
    ['ann', 1],
    ['bob', 2],
    ['ann', new Uint8Array([3])],
  ])
  await Promise.all([ann.close(), bob.close()])
})

it('passes requests to one responder, and its reply back', async () => {
  const server = createTestServer()
  const { client: ann } = createTestClient({ server })
  const { client: bob } = createTestClient({ server })
  await expect(request('sum', [1], { client: ann })).rejects.toMatchObject({ code: 'E_NO_RESPONDERS' })
  const responder = respond(
    'sum',
    (numbers) => {
      if (!Array.isArray(numbers)) throw new WebMQError('E_FORBIDDEN', { message: 'numbers only' })
      return numbers.length > 2 ? new Promise(() => undefined) : numbers[0] + numbers[1]
    },
    { client: bob },
  )
  await respond('#', () => 'any', { client: ann }).ready
  await responder.ready
  expect(await request('sum', [1, 2], { client: ann })).toBe(3)
  expect(await request('other', null, { client: bob })).toBe('any')
  await expect(request('sum', 'x', { client: ann })).rejects.toMatchObject({
    code: 'E_FORBIDDEN',
    message: expect.stringContaining('numbers only'),
  })
  const unanswered = request('sum', [1, 2, 3], { client: ann })
  await Promise.all([expect(unanswered).rejects.toMatchObject({ code: 'E_RESPONSE' }), bob.close()])
  server.revoke('#')
  await expect(request('sum', [1], { client: ann })).rejects.toMatchObject({ code: 'E_NO_RESPONDERS' })
  await ann.close()
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
  expect(await client.publish('a', 1)).toMatchObject({ position: 'epoch1:1.AAAAA' })
  await client.close()
})

it('keeps as many messages as configured', async () => {
  const server = createTestServer({ historyMaxMessages: 2 })
  for (const n of [1, 2, 3]) server.publish('a', n)
  const { client } = createTestClient({ server })
  expect(await client.listen('a', () => 1, { last: 5 }).ready).toMatchObject({ replayed: 2 })
  expect(await client.listen('a', () => 2, { since: 'epoch1:1.AAAAA' }).ready).toMatchObject({
    recovered: true,
    replayed: 2,
  })
  expect(await client.listen('a', () => 3, { since: 'epoch1:0.AAAAA' }).ready).toMatchObject({
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
