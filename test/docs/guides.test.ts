import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, vi } from 'vitest'
import { loaded } from 'webmq-client/parts'
import { freePort, sharedService, startFaultProxy } from 'webmq-services'
import { useOwnClock } from '../../packages/server/test/own-clock.js'
import { startClient, startServer } from '../live.js'
import { ROOT } from './blocks.js'
import { pages } from './page-blocks.mjs'

const SERVICE_MS = 120_000
const HISTORY = ['chat.#=1000,10m']

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index + 1)

/** Options of the nodes of one test, which share a Redis. */
async function withRedis(name: string) {
  const { url } = await sharedService('redis')
  return { broker: url, brokerNamespace: `guide-${name}-${process.pid}`, history: HISTORY }
}

// When a server ended, recovery failed, and all its clients fetched at once: socketio/socket.io#5413 and
// socketio/socket.io-redis-streams-adapter#27. What a client had missed was known to the server that ended.
it('from Socket.IO: clients recover through a rolling deploy, and none of them fetches', {
  timeout: SERVICE_MS,
}, async () => {
  const options = await withRedis('deploy')
  const ports = [await freePort(), await freePort()]
  const nodes = await Promise.all(ports.map((port) => startServer({ ...options, port })))
  let serving = 0
  const { client, gaps } = startClient('', { url: () => `ws://127.0.0.1:${ports[serving]}/ws` })
  const handled: unknown[] = []
  const causes: unknown[] = []
  const receiver = loaded(
    (payload) => handled.push(payload),
    ({ cause }) => void causes.push(cause),
  )
  const subscription = client.listen('chat.42.*', receiver)
  await subscription.ready
  await vi.waitFor(() => expect(causes).toEqual(['initial']))

  for (const [index, port] of ports.entries()) {
    serving = 1 - index
    const [ending, staying] = [nodes[index], nodes[serving]]
    const ended = ending?.server.stop({ drainMs: 0 })
    for (const number of numbers(50)) await staying?.server.publish('chat.42.message', 50 * index + number)
    await ended
    await vi.waitFor(() => expect(handled).toHaveLength(50 * (index + 1)))
    nodes[index] = await startServer({ ...options, port })
  }
  expect(handled).toEqual(numbers(100))
  expect(await subscription.ready).toMatchObject({ recovered: true })
  expect([causes, gaps]).toEqual([['initial'], []])
})

// Nothing told whether events were missed, so every return to the page fetched everything: Expensify/App#1204.
// A subscription that has succeeded again looks the same, whether something was published meanwhile or not.
it('from Pusher: a page that comes back fetches after a gap alone', async () => {
  const { server, url } = await startServer({ historyMaxMessages: 10 })
  const { client, cut } = startClient(url, { random: () => 0.5 })
  const handled: unknown[] = []
  const causes: unknown[] = []
  const receiver = loaded(
    (payload) => handled.push(payload),
    ({ cause, gap }) => void causes.push(gap?.reason ?? cause),
  )
  await client.listen('chat.42.*', receiver).ready
  await vi.waitFor(() => expect(causes).toEqual(['initial']))

  const missed = async (payloads: readonly number[]) => {
    void cut()
    await vi.waitFor(() => expect(client.state).toBe('reconnecting'))
    // All at once: it comes back a quarter of a second later, however slow the machine is.
    await server.publishBatch(payloads.map((payload) => ({ key: 'chat.42.message', payload })))
    await vi.waitFor(() => expect(handled.at(-1)).toBe(payloads.at(-1)))
  }
  await missed([1, 2, 3])
  expect([handled, causes]).toEqual([[1, 2, 3], ['initial']])
  await missed(numbers(30))
  await vi.waitFor(() => expect(causes).toEqual(['initial', 'history-expired']))
})

// After a sleep of more than two minutes the app had to compare `resumed` and ask for the history: ably/ably-js#1559.
// What a client has missed is kept for two minutes after its connection is lost.
it('from Ably: a client that has slept for three minutes has its messages, without a line of code', async () => {
  const clock = useOwnClock()
  const { server, url } = await startServer({ history: HISTORY })
  const asleep = { minMs: 180_000, maxMs: 180_000 }
  const { client, cut, gaps } = startClient(url, { random: () => 0.99, reconnect: asleep })
  const handled: unknown[] = []
  const subscription = client.listen('chat.42.*', (payload) => handled.push(payload))
  await subscription.ready
  await cut()
  for (const number of numbers(20)) await server.publish('chat.42.message', number)
  expect(client.state).toBe('reconnecting')
  clock.putForward(180_000)
  await vi.waitFor(() => expect(handled).toEqual(numbers(20)))
  expect(await subscription.ready).toMatchObject({ recovered: true, replayed: 20 })
  expect(gaps).toEqual([])
})

// Rows that were inserted up to three seconds after SUBSCRIBED never came: supabase/supabase-js#1599.
// The status was told when the channel was joined, before the stream of changes had begun.
it('from Supabase: what another node publishes the moment a listen is ready arrives', {
  timeout: SERVICE_MS,
}, async () => {
  const options = await withRedis('ready')
  const [near, far] = [await startServer(options), await startServer(options)]
  const { client } = startClient(near.url)
  const handled: unknown[] = []
  for (const number of numbers(30)) {
    await client.listen(`chat.${number}.#`, (payload) => handled.push(payload)).ready
    await far.server.publish(`chat.${number}.message`, number)
  }
  await vi.waitFor(() => expect(handled).toHaveLength(30))
  expect(handled).toEqual(numbers(30))
})

// Rows that were inserted while a tab slept were missed: supabase/realtime-js#121, supabase-community/supabase-kt#255.
// A channel that is joined again goes on with the next change.
it('from Supabase: a tab that slept shows all rows, each once, also when the log has been lost', async () => {
  const port = await freePort()
  const table = new Map<number, unknown>()
  let { server } = await startServer({ port })
  const insert = async (count: number) => {
    for (let left = count; left > 0; left--) {
      const id = table.size + 1
      table.set(id, { id })
      await server.publish('chat.42.row', { id })
    }
  }
  await insert(5)
  const { client, cut } = startClient(`ws://127.0.0.1:${port}/ws`)
  const shown = new Map<number, unknown>()
  const added: number[] = []
  const causes: unknown[] = []
  const receiver = loaded<{ id: number }>(
    (row) => {
      added.push(row.id)
      shown.set(row.id, row)
    },
    async ({ cause }) => {
      causes.push(cause)
      const rows = [...table]
      await insert(5)
      shown.clear()
      for (const [id, row] of rows) shown.set(id, row)
    },
  )
  client.listen('chat.42.row', receiver)
  await vi.waitFor(() => expect(shown.size).toBe(10))
  await cut()
  await insert(100)
  await vi.waitFor(() => expect(shown).toEqual(table))
  expect(added).toEqual(numbers(110).slice(5))
  expect(causes).toEqual(['initial'])

  await server.stop({ drainMs: 0 })
  ;({ server } = await startServer({ port }))
  await vi.waitFor(() => expect(causes).toEqual(['initial', 'gap']))
  await vi.waitFor(() => expect(shown).toEqual(table))
})

// What was published after the socket was open and before the page had subscribed again was lost.
// A relay of sockets to a channel of Redis sends to whoever is subscribed at that moment: redis/redis#3559.
it('from ws and Redis: nothing is lost between a reconnect and the listen that follows it', async () => {
  const { server, url } = await startServer({ history: HISTORY })
  const { client, sockets, cut, gaps } = startClient(url)
  const handled: unknown[] = []
  await client.listen('chat.42.*', (payload) => handled.push(payload)).ready
  let count = 0
  const publish = async () => {
    await server.publish('chat.42.message', ++count)
    // However long it stays away: the log has room for what comes meanwhile.
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  for (const cuts of numbers(5)) {
    const isBack = () => client.state === 'connected' && sockets.length === cuts + 1
    void cut()
    do await publish()
    while (!isBack())
    await publish()
  }
  await vi.waitFor(() => expect(handled.at(-1)).toBe(count))
  expect(handled).toEqual(numbers(count))
  expect(gaps).toEqual([])
})

// A server whose link to Redis was lost subscribed again by itself, and its clients were never told what they had missed:
// django/channels_redis#256, redis/ioredis#1760. Redis keeps nothing for a subscriber that is away.
it('from ws and Redis: a node that was cut off from Redis gives its clients what they missed', {
  timeout: SERVICE_MS,
}, async () => {
  const options = await withRedis('cut-off')
  await using proxy = await startFaultProxy({ url: options.broker })
  const near = await startServer({ ...options, broker: proxy.url })
  const far = await startServer(options)
  const { client, gaps, sockets } = startClient(near.url)
  const handled: unknown[] = []
  await client.listen('chat.42.*', (payload) => handled.push(payload)).ready
  await far.server.publish('chat.42.message', 1)
  await vi.waitFor(() => expect(handled).toEqual([1]))
  await proxy.cut()
  for (const number of numbers(50)) await far.server.publish('chat.42.message', number + 1)
  expect(handled).toEqual([1])
  await proxy.heal()
  await vi.waitFor(() => expect(handled).toEqual(numbers(51)))
  expect([gaps, sockets.length]).toEqual([[], 1])
})

it('every guide has its failing case here', () => {
  const source = readFileSync(new URL(import.meta.url), 'utf8')
  const guides = pages().filter((page) => page.startsWith('docs/client/from-'))
  expect(guides).toHaveLength(5)
  for (const guide of guides) {
    const cases = [
      ...readFileSync(join(ROOT, guide), 'utf8').matchAll(/\(\.\.\/\.\.\/test\/docs\/guides\.test\.ts "([^"]+)"\)/g),
    ]
    expect(cases, guide).not.toEqual([])
    for (const [, title = ''] of cases) expect(source, guide).toContain(`it('${title}`)
  }
})
