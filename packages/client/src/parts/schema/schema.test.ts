import { type } from 'arktype'
import * as v from 'valibot'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { z } from 'zod'
import { createTestClient } from '../../dev/testing/index.js'
import { createTestServer } from '../../dev/testing/test-server.js'
import { close, listen, publish, type WebMQError } from '../../index.js'
import { history } from '../history/index.js'
import { remove, state } from '../state/index.js'
import { openStream, readStream } from '../stream/index.js'
import { type StandardSchema, setup, typed, withTopics } from './index.js'

const message = z.object({ text: z.string(), at: z.string().transform((text) => new Date(text)) })
const topics = {
  'chat.{room}.message': message,
  'orders.{region}.{#path}': z.object({ id: z.number().default(0) }),
  status: z.enum(['up', 'down']),
}

async function connected<const M extends Parameters<typeof withTopics>[1]>(schemas: M, receive?: 'report' | 'off') {
  const { client: plain, server } = createTestClient()
  onTestFinished(() => plain.close({ flushMs: 0 }))
  const errors: { error: unknown; key?: string | undefined; pattern?: string | undefined }[] = []
  plain.on('error', (error) => errors.push(error))
  const client = withTopics(plain, schemas, { receive: receive ?? 'report' })
  await client.connect()
  return { client, server, errors }
}

const LIBRARIES: readonly [string, StandardSchema<{ id: number }>, place: string][] = [
  ['zod', z.object({ id: z.number() }), 'payload.id: '],
  ['valibot', v.object({ id: v.number() }), 'payload.id: '],
  ['arktype', type({ id: 'number' }), 'payload.id: '],
]

describe.each(LIBRARIES)('a schema of %s', (_, schema, place) => {
  it('refuses a payload before it is sent, with the place of the issue', async () => {
    const { client, server } = await connected({ 'orders.*': schema })
    await client.publish('orders.7', { id: 7 })
    const refused = client.publish('orders.8', { id: 'eight' } as never)
    await expect(refused).rejects.toMatchObject({ code: 'E_PAYLOAD_INVALID', message: expect.stringContaining(place) })
    const issues = (await refused.catch((error: WebMQError) => error.cause)) as readonly { message: string }[]
    expect(issues.map(({ message }) => typeof message)).toEqual(['string'])
    expect(server.received.filter(({ verb }) => verb === 'publish')).toHaveLength(1)
  })

  it('keeps an invalid message from the handler, and reports it', async () => {
    const { client, server, errors } = await connected({ 'orders.*': schema })
    const handler = vi.fn()
    await client.listen('orders.*', (payload) => handler(payload)).ready
    server.publish('orders.7', { id: '7' })
    server.publish('orders.8', { id: 8 })
    await vi.waitFor(() => expect(handler.mock.calls).toEqual([[{ id: 8 }]]))
    expect(errors).toMatchObject([{ key: 'orders.7', error: { code: 'E_PAYLOAD_INVALID' } }])
  })
})

describe('topics with schemas', () => {
  it('send a payload as given, and hand over what the schema makes of it', async () => {
    const { client, server } = await connected(topics)
    const handler = vi.fn()
    await client.listen('chat.{room}.message', handler).ready
    await client.publish('chat.42.message', { text: 'hi', at: '2026-11-23T00:00:00Z' })
    await vi.waitFor(() => expect(handler).toHaveBeenCalled())
    expect(handler.mock.calls[0]).toMatchObject([
      { text: 'hi', at: new Date('2026-11-23T00:00:00Z') },
      { key: 'chat.42.message', topic: 'chat.{room}.message', params: { room: '42' }, replayed: false },
    ])
    expect(server.patterns).toEqual(['chat.*.message'])
  })

  it('tell by topic and params which schema has accepted a message', async () => {
    const { client, server } = await connected(topics)
    const seen: unknown[] = []
    await client.listen('#', (_, { topic, params }) => seen.push([topic, params])).ready
    server.publish('status', 'up')
    server.publish('orders.eu', {})
    server.publish('orders.eu.a.b', {})
    await vi.waitFor(() =>
      expect(seen).toEqual([
        ['status', {}],
        ['orders.{region}.{#path}', { region: 'eu', path: '' }],
        ['orders.{region}.{#path}', { region: 'eu', path: 'a.b' }],
      ]),
    )
  })

  it('add the names of the pattern to those of the topic', async () => {
    const { client, server } = await connected(topics)
    const seen: unknown[] = []
    await client.listen('orders.{land}.{year}', (_, { params }) => seen.push(params)).ready
    server.publish('orders.eu.2026', {})
    await vi.waitFor(() => expect(seen).toEqual([{ region: 'eu', path: '2026', land: 'eu', year: '2026' }]))
  })

  it('try all topics of a key, and report the first that has refused', async () => {
    const { client } = await connected({ '#': z.object({ any: z.string() }), 'a.*': z.number() })
    await client.publish('a.b', 1)
    await client.publish('a.b', { any: 'thing' })
    await expect(client.publish('a.b', true as never)).rejects.toThrow(/payload: .*\(topic '#'\)/)
  })

  it('refuse keys of no topic in both directions', async () => {
    const { client, server, errors } = await connected({ status: topics.status })
    const handler = vi.fn()
    await client.listen('#', handler).ready
    await expect(client.publish('other' as never, 1 as never)).rejects.toMatchObject({ code: 'E_KEY_INVALID' })
    server.publish('other', 1)
    await vi.waitFor(() => expect(errors).toMatchObject([{ key: 'other', error: { code: 'E_KEY_INVALID' } }]))
    expect(handler).not.toHaveBeenCalled()
  })

  it('check messages of the history too', async () => {
    const { client, server, errors } = await connected(topics)
    server.publish('chat.1.message', { text: 'first', at: '2026-01-01' })
    server.publish('chat.1.message', { text: 'without a date' })
    const { messages } = await history('chat.1.message', { client })
    expect(messages).toMatchObject([{ payload: { at: new Date('2026-01-01') }, params: { room: '1' } }])
    expect(errors).toMatchObject([{ key: 'chat.1.message', error: { code: 'E_PAYLOAD_INVALID' } }])
  })

  it('hand over what was published when receiving is off', async () => {
    const { client, server, errors } = await connected(topics, 'off')
    const seen: unknown[] = []
    await client.listen('chat.{room}.message', (payload, { params }) => seen.push([payload, params])).ready
    server.publish('chat.7.message', { text: 1 })
    await vi.waitFor(() => expect(seen).toEqual([[{ text: 1 }, { room: '7' }]]))
    expect(errors).toEqual([])
    await expect(client.publish('chat.7.message', { text: 1 } as never)).rejects.toThrow('payload.text: ')
  })

  it('check a message once for several subscriptions', async () => {
    const check = vi.fn((value: unknown) => ({ value }))
    const schema: StandardSchema = { '~standard': { version: 1, vendor: 'test', validate: check } }
    const { client, server } = await connected({ '#': schema })
    const handler = vi.fn()
    await Promise.all([client.listen('#', handler).ready, client.listen('a.*', handler).ready])
    server.publish('a.b', 1)
    await vi.waitFor(() => expect(handler).toHaveBeenCalledTimes(2))
    expect(check).toHaveBeenCalledTimes(1)
  })

  it('end a subscription by its pattern with names, and its handler or receiver', async () => {
    const { client, server } = await connected(topics)
    const handler = () => undefined
    const receiver = { deliver: () => undefined }
    client.listen('chat.{room}.message', handler)
    client.listen('orders.{region}.*', receiver)
    await client.listen('status', () => 1).ready
    await client.unlisten('chat.{room}.message', handler)
    await client.unlisten('orders.{region}.*', receiver)
    expect(server.patterns).toEqual(['status'])
  })

  it('bound the text of an error, which others may have written', async () => {
    const { client } = await connected({ a: z.record(z.string(), z.number()) })
    const error = await client.publish('a', { ['x'.repeat(10_000)]: 'y' } as never).catch((cause: Error) => cause)
    expect((error as Error).message.length).toBeLessThan(400)
  })
})

describe('what is refused', () => {
  const refusing: StandardSchema = {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate: () => {
        throw new TypeError('a bug')
      },
    },
  }

  it('an asynchronous schema, because it would change the order', async () => {
    const { client } = await connected({ a: z.string().refine(async () => true) })
    await expect(client.publish('a', 'b')).rejects.toMatchObject({ code: 'E_OPTION_INVALID' })
  })

  it('a payload whose schema throws', async () => {
    const { client } = await connected({ a: refusing })
    await expect(client.publish('a', 'b')).rejects.toMatchObject({
      code: 'E_PAYLOAD_INVALID',
      cause: new TypeError('a bug'),
    })
  })

  it.each([
    ['a.{}', z.any(), 'E_PATTERN_INVALID'],
    ['a.{b c}', z.any(), 'E_PATTERN_INVALID'],
    ['a.{b}x', z.any(), 'E_PATTERN_INVALID'],
    ['{a}.{#a}', z.any(), 'E_PATTERN_INVALID'],
    ['a', undefined, 'E_OPTION_INVALID'],
    ['a', {}, 'E_OPTION_INVALID'],
  ])('topics: %s', (pattern, schema, code) => {
    const { client } = createTestClient()
    expect(() => withTopics(client, { [pattern]: schema as never })).toThrow(expect.objectContaining({ code }))
    // and nothing has changed
    expect(withTopics(client, { a: typed<1>() })).toBe(client)
  })

  it('a second call for a client, and an unknown option', () => {
    const { client } = createTestClient()
    expect(() => withTopics(client, {}, { receive: 'on' as never })).toThrow('receive')
    withTopics(client, {})
    expect(() => withTopics(client, {})).toThrow('topics already')
  })
})

it('setup gives the default client topics', async () => {
  const server = createTestServer()
  const { url, WebSocket } = server
  const options = { url, WebSocket, topics: { 'cursors.{user}': typed<{ x: number }>(), status: topics.status } }
  const client = setup(options)
  const seen: unknown[] = []
  await client.listen('cursors.{user}', ({ x }, { params }) => seen.push([x, params.user])).ready
  const all: unknown[] = []
  await listen('#', (_, { key }) => all.push(key)).ready
  await client.publish('cursors.ada', { x: 1 })
  await expect(publish('status', 'sideways')).rejects.toMatchObject({ code: 'E_PAYLOAD_INVALID' })
  expect(seen).toEqual([[1, 'ada']])
  expect(all).toEqual(['cursors.ada'])
  expect(server.patterns.toSorted()).toEqual(['#', 'cursors.*'])
  await close({ flushMs: 0 })
})

// Symptom: a state of a client with schemas had no value, `remove` was refused, and a stream stopped at its first message.
describe('parts of a client with schemas', () => {
  async function retaining(receive?: 'report' | 'off') {
    const server = createTestServer({ retain: ['#'] })
    const { client: plain } = createTestClient({ server })
    onTestFinished(() => plain.close({ flushMs: 0 }))
    const errors = vi.fn()
    plain.on('error', ({ error }) => errors((error as WebMQError).code))
    return { client: withTopics(plain, { 'orders.{id}': z.number() }, { ...(receive && { receive }) }), server, errors }
  }

  it.each(['report', 'off'] as const)('have the state of its keys, and what was removed: %s', async (receive) => {
    const { client, server, errors } = await retaining(receive)
    server.publish('orders.1', 1)
    const store = state('orders.*', { client })
    await store.ready
    await client.publish('orders.2', 2)
    await vi.waitFor(() => expect(Object.fromEntries(store.entries())).toEqual({ 'orders.1': 1, 'orders.2': 2 }))
    const handler = vi.fn()
    await client.listen('orders.{id}', (payload, { params }) => handler(payload, params)).ready
    await remove('orders.1', { client })
    await vi.waitFor(() => expect(Object.fromEntries(store.entries())).toEqual({ 'orders.2': 2 }))
    expect(handler.mock.calls).toEqual([[undefined, { id: '1' }]])
    expect(errors).not.toHaveBeenCalled()
  })

  it('refuses a value that the schema refuses', async () => {
    const { client, server, errors } = await retaining()
    const store = state('orders.*', { client })
    await store.ready
    server.publish('orders.1', 'one')
    server.publish('orders.2', 2)
    await vi.waitFor(() => expect(Object.fromEntries(store.entries())).toEqual({ 'orders.2': 2 }))
    expect(errors.mock.calls).toEqual([['E_PAYLOAD_INVALID']])
  })

  it('read streams', async () => {
    const { client, errors } = await retaining()
    const reader = readStream('orders.1', { client })
    await reader.ready
    const writer = await openStream('orders.1', { client })
    await writer.append('one')
    await vi.waitFor(() => expect(reader.content).toBe('one'))
    await writer.append(' two')
    await writer.end()
    expect(await reader.text()).toBe('one two')
    expect(errors).not.toHaveBeenCalled()
  })
})
