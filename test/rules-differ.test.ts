import { setTimeout } from 'node:timers/promises'
import { expect, it, onTestFinished, vi } from 'vitest'
import { state } from 'webmq-client/parts'
import { sharedService } from 'webmq-services'
import { startClient, startServer } from './live.js'

const KEY_COUNT = 700
/** Time between two lives of the other node. */
const LIFE_MS = 300

// Symptom: `state()` told "removed", and was not stale, for values that were there. Each page of a state was answered with a
// gap while nodes had other rules, and the client called what it had got by then the whole state.
it('has every value of the state, and calls none removed, while nodes with other rules come and go', {
  timeout: 60_000,
}, async () => {
  const { url: broker } = await sharedService('redis')
  const options = { broker, brokerNamespace: `rules-${process.pid}` }
  const node = await startServer({ ...options, retain: ['prices.#'] })
  const keys = Array.from({ length: KEY_COUNT }, (_, index) => `prices.${index}`)
  for (const key of keys) await node.server.publish(key, 0)
  const { client, gaps, cut } = startClient(node.url, { reconnect: { minMs: 10 } })
  const store = state('prices.#', { client })
  await store.ready
  const removed: string[] = []
  const untrue: number[] = []
  store.subscribe((changes) => {
    removed.push(...changes.removed)
    if (!store.isStale && store.size < KEY_COUNT) untrue.push(store.size)
  })
  let isOver = false
  onTestFinished(() => {
    isOver = true
  })
  const publishing = (async () => {
    for (let count = 1; !isOver; count++) await node.server.publish(keys[(count * 7) % KEY_COUNT] ?? '', count)
  })()
  for (let life = 0; life < 3; life++) {
    const other = await startServer({ ...options, history: ['other.#=100'] })
    await setTimeout(LIFE_MS)
    await cut()
    const late = state('prices.*', { client: startClient(node.url).client })
    await late.ready
    expect(late.size).toBe(KEY_COUNT)
    await other.server.stop({ drainMs: 0 })
  }
  isOver = true
  await publishing
  await vi.waitFor(() => expect([store.isStale, store.size]).toEqual([false, KEY_COUNT]))
  expect([removed, untrue]).toEqual([[], []])
  expect(gaps.filter(({ reason }) => reason === 'broker-lost')).toEqual([])
})

it('names the reason to a listener that comes back while nodes log other keys, and not an outage of the broker', async () => {
  const { url: broker } = await sharedService('redis')
  const options = { broker, brokerNamespace: `rules-reason-${process.pid}` }
  const node = await startServer({ ...options, history: ['a.#=100'] })
  const { client, gaps, cut } = startClient(node.url, { reconnect: { minMs: 10 } })
  const heard: unknown[] = []
  await client.listen('a.#', (payload) => heard.push(payload)).ready
  await node.server.publish('a.1', 1)
  await vi.waitFor(() => expect(heard).toEqual([1]))
  await startServer({ ...options, history: ['b.#=100'] })
  await cut()
  await vi.waitFor(() => expect(gaps.map(({ reason }) => reason)).toEqual(['rules-differ']))
})
