import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createTestClient, createTestServer } from '../../dev/testing/index.js'
import { type HistoryResult, history } from './index.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const settle = () => vi.advanceTimersByTimeAsync(0)
const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index)

function serverWith(count: number, options?: Parameters<typeof createTestServer>[0]) {
  const server = createTestServer(options)
  for (const n of numbers(1, count)) server.publish('a', n)
  server.publish('b', 'other')
  return server
}

const payloadsOf = ({ messages }: { messages: readonly { payload: unknown }[] }) =>
  messages.map(({ payload }) => payload)

it('returns the newest messages of a key, oldest first, without listening', async () => {
  const server = serverWith(150)
  const { client } = createTestClient({ server })
  const result = await history('a', { client })
  expect(payloadsOf(result)).toEqual(numbers(51, 150))
  expect(result).toMatchObject({ position: 'epoch1:47.AAAAA', more: false })
  expect(result.messages[0]).toEqual({ key: 'a', payload: 51, position: 'epoch1:1f.AAAAA', replayed: true })
  expect(payloadsOf(await history('a', { client, limit: 2 }))).toEqual([149, 150])
  expect(payloadsOf(await history('a', { client, limit: 2, reverse: true }))).toEqual([150, 149])
  expect(payloadsOf(await history('none', { client }))).toEqual([])
  expect(server.patterns).toEqual([])
})

it('reads page by page from a position', async () => {
  const { client } = createTestClient({ server: serverWith(7) })
  const pages: unknown[] = []
  let since: string | undefined = 'epoch1:0.AAAAA'
  for (let more = true; more; ) {
    const result: HistoryResult<unknown> = await history('a', { client, since, limit: 3 })
    pages.push(payloadsOf(result))
    ;({ position: since, more } = result)
  }
  expect(pages).toEqual([[1, 2, 3], [4, 5, 6], [7]])
  expect(payloadsOf(await history('a', { client, since: 'epoch1:2.AAAAA', limit: 2, reverse: true }))).toEqual([7, 6])
})

it('returns the messages of a time span', async () => {
  const server = serverWith(2)
  await vi.advanceTimersByTimeAsync(60_000)
  server.publish('a', 3)
  const { client } = createTestClient({ server })
  expect(payloadsOf(await history('a', { client, rewind: '10s' }))).toEqual([3])
  expect(payloadsOf(await history('a', { client, rewind: 70_000 }))).toEqual([1, 2, 3])
})

it('says why messages may be missing', async () => {
  const { client, server } = createTestClient({ server: serverWith(3) })
  server.restartHistory()
  server.publish('a', 4)
  const result = await history('a', { client, since: 'epoch1:1.AAAAA' })
  expect([payloadsOf(result), result.gap]).toEqual([[4], 'epoch-changed'])
})

it('delivers nothing to listeners, and takes nothing from them', async () => {
  const { client, server } = createTestClient({ server: serverWith(3) })
  const handled: unknown[] = []
  await client.listen('a', (payload) => handled.push(payload)).ready
  const reading = history('a', { client })
  server.publish('a', 4)
  expect(payloadsOf(await reading)).toEqual([1, 2, 3, 4])
  await settle()
  expect(handled).toEqual([4])
})

it('waits for a connection, and asks again after a lost one', async () => {
  const { client, server } = createTestClient({ server: serverWith(3) })
  server.isUp = false
  const reading = history('a', { client })
  await settle()
  server.isUp = true
  server.ignore('history')
  await vi.advanceTimersByTimeAsync(2_000)
  server.drop()
  await vi.advanceTimersByTimeAsync(2_000)
  expect(payloadsOf(await reading)).toEqual([1, 2, 3])
  expect(server.received.filter(({ verb }) => verb === 'history')).toHaveLength(2)
})

it('times out, and ignores a late answer', async () => {
  const { client, server } = createTestClient({ server: serverWith(3), ackTimeoutMs: 1_000 })
  const handled: unknown[] = []
  await client.listen('a', (payload) => handled.push(payload)).ready
  server.loseAnswer('history')
  const reading = history('a', { client })
  await Promise.all([
    expect(reading).rejects.toMatchObject({ code: 'E_TIMEOUT', retryable: true }),
    vi.advanceTimersByTimeAsync(1_000),
  ])
  expect(handled).toEqual([])
  const left = history('a', { client })
  await client.close()
  await expect(left).rejects.toMatchObject({ code: 'E_CLOSED' })
})

it.each([
  ['a.*', {}, 'E_KEY_INVALID'],
  ['a', { limit: -1 }, 'E_OPTION_INVALID'],
  ['a', { rewind: 'soon' }, 'E_OPTION_INVALID'],
  ['a', { since: 'e 1' }, 'E_POSITION_INVALID'],
  ['a', { since: 'e:1', rewind: 1 }, 'E_OPTION_INVALID'],
  ['a', { since: '' }, 'E_POSITION_INVALID'],
])('refuses invalid arguments: %s %j', async (key, options, code) => {
  const { client } = createTestClient()
  await expect(history(key, { client, ...options })).rejects.toMatchObject({ code })
})

it('rejects when nothing is logged, or too many reads wait', async () => {
  const { client } = createTestClient({ server: createTestServer({ historyMaxMessages: 0 }) })
  await expect(history('a', { client })).rejects.toMatchObject({ code: 'E_UNSUPPORTED' })
  const { client: other, server } = createTestClient({ offlineQueue: { maxMessages: 1 } })
  server.ignore('history')
  const first = history('a', { client: other }).catch(() => undefined)
  await expect(history('a', { client: other })).rejects.toMatchObject({ code: 'E_QUEUE_FULL' })
  await Promise.all([first, vi.advanceTimersByTimeAsync(10_000)])
})
