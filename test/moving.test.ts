import { expect, it, onTestFinished, vi } from 'vitest'
import { sharedService, startFaultProxy } from 'webmq-services'
import { startClient, startServer } from './live.js'

const MISSED_COUNT = 1_000

// A node whose link to its broker stood still replayed its whole log to a client that knew more, in the same epoch.
it('moves on from a node that is behind: gets each message once, hears of no gap and no error, loses no publish', async () => {
  const redis = await sharedService('redis')
  const proxy = await startFaultProxy(redis)
  onTestFinished(() => proxy.stop())
  const options = {
    brokerNamespace: `moving-${process.pid}`,
    history: ['#=10000'],
    brokerHeartbeatMs: 10_000,
  }
  const ahead = await startServer({ ...options, broker: redis.url })
  const behind = await startServer({ ...options, broker: proxy.url })

  const tried: string[] = []
  const urls = [ahead.url, behind.url, behind.url, ahead.url]
  const url = () => {
    const next = urls[tried.length] ?? ahead.url
    tried.push(next)
    return next
  }
  const { client, changes, gaps, cut } = startClient('', { url, reconnect: { minMs: 10 } })
  const errors: unknown[] = []
  client.on('error', (error) => errors.push(error))
  const heard: unknown[][] = [[], []]
  const subscriptions = ['k.*', '#'].map((pattern, index) =>
    client.listen(pattern, (payload) => heard[index]?.push(payload)),
  )
  for (const subscription of subscriptions) await subscription.ready
  await ahead.server.publish('k.0', 0)
  await vi.waitFor(() => expect(heard).toEqual([[0], [0]]))

  await proxy.swallow()
  for (let number = 1; number <= MISSED_COUNT / 2; number++) await ahead.server.publish(`k.${number % 3}`, number)
  await vi.waitFor(() => expect(heard.map(({ length }) => length)).toEqual([501, 501]))
  await cut()
  for (let number = MISSED_COUNT / 2 + 1; number <= MISSED_COUNT; number++)
    await ahead.server.publish(`k.${number % 3}`, number)
  const published = client.publish('k.own', 'own')
  await published
  const numbers = Array.from({ length: MISSED_COUNT + 1 }, (_, number) => number)
  await vi.waitFor(() => expect(heard.map((each) => each.at(-1))).toEqual(['own', 'own']))
  expect(heard).toEqual([
    [...numbers, 'own'],
    [...numbers, 'own'],
  ])
  expect(tried.slice(0, 4)).toEqual(urls)
  expect(changes.filter(({ code }) => code === 4012)).toHaveLength(2)
  expect(behind.server.stats().broker.behindCount).toBeGreaterThanOrEqual(2)
  expect([gaps, errors]).toEqual([[], []])
  expect(subscriptions.map(({ state }) => state)).toEqual(['active', 'active'])
})
