import { describe, expect, it, vi } from 'vitest'
import { FaultyBroker } from '../packages/server/test/faulty-broker.js'
import { startClient as startLiveClient, startServer } from './live.js'

describe.each(['native', 'ws', 'uws'] as const)(
  'clients of a server that loses its broker, transport %s',
  (transport) => {
    async function start(timeoutMs?: number) {
      const broker = new FaultyBroker(timeoutMs === undefined ? {} : { timeoutMs })
      const started = await startServer({ transport, broker, closeTimeoutMs: 500 })
      return { broker, ...started, httpUrl: `http://127.0.0.1:${started.port}` }
    }

    const startClient = (url: string) => startLiveClient(url, { reconnect: { minMs: 20 }, random: Math.random })

    it('hear of the gap, client and subscription, between the messages that it lies between', async () => {
      const { broker, url } = await start()
      const { client, gaps, sockets } = startClient(url)
      const heard: unknown[] = []
      for (const pattern of ['a.*', 'a.#']) {
        const subscription = client.listen(pattern, (payload) => heard.push([pattern, payload]))
        subscription.on('gap', (gap) => heard.push([pattern, gap.reason]))
        await subscription.ready
      }
      broker.deliver('a.1', 1)
      broker.lose()
      broker.deliver('a.1', 'missed')
      broker.recover()
      broker.deliver('a.1', 2)
      await vi.waitFor(() => expect(heard).toHaveLength(6))
      for (const pattern of ['a.*', 'a.#']) {
        const own = heard.filter((entry) => (entry as unknown[])[0] === pattern)
        expect(own).toEqual([1, 'broker-lost', 2].map((what) => [pattern, what]))
      }
      expect(gaps).toEqual(['a.*', 'a.#'].map((pattern) => ({ pattern, reason: 'broker-lost' })))
      expect(sockets).toHaveLength(1)
    })

    it('listen again by themselves until the broker is there', async () => {
      const { broker, server, url } = await start(20)
      const { client, gaps } = startClient(url)
      await client.connect()
      broker.lose()
      const payloads: unknown[] = []
      const subscription = client.listen('a', (payload) => payloads.push(payload))
      await vi.waitFor(() => expect(server.stats().refusedCounts.E_BROKER_UNAVAILABLE).toBeGreaterThanOrEqual(3))
      expect(subscription.state).toBe('pending')
      broker.recover()
      await subscription.ready
      broker.deliver('a', 1)
      await vi.waitFor(() => expect(payloads).toEqual([1]))
      // It had heard nothing before that it could have missed.
      expect(gaps).toEqual([])
    })

    it('are told gap when they reconnect while the broker is away', async () => {
      const { broker, url } = await start(20)
      const { client, gaps, sockets } = startClient(url)
      const payloads: unknown[] = []
      const subscription = client.listen('a', (payload) => payloads.push(payload))
      await subscription.ready
      broker.lose()
      sockets.at(-1)?.terminate()
      await vi.waitFor(() => expect(sockets).toHaveLength(2))
      await client.connect()
      broker.recover()
      await vi.waitFor(() => expect(subscription.state).toBe('active'))
      broker.deliver('a', 1)
      await vi.waitFor(() => expect(payloads).toEqual([1]))
      expect(gaps).toMatchObject([{ pattern: 'a', reason: 'no-history' }])
    })

    it('publish into a short outage without noticing, and into a long one with an error to try again', async () => {
      const { broker, url } = await start(1_000)
      const { client } = startClient(url)
      const payloads: unknown[] = []
      await client.listen('a', (payload) => payloads.push(payload)).ready
      broker.lose()
      const published = Promise.all([1, 2, 3].map((number) => client.publish('a', number)))
      await vi.waitFor(() => expect(broker.stats().pendingCount).toBe(3))
      broker.recover()
      expect(await published).toMatchObject(Array(3).fill({ duplicate: false }))
      await vi.waitFor(() => expect(payloads).toEqual([1, 2, 3]))
      broker.lose()
      await expect(client.publish('a', 4)).rejects.toMatchObject({ code: 'E_BROKER_UNAVAILABLE', retryable: true })
      expect(client.state).toBe('connected')
      broker.recover()
    })

    it('are kept by a node that says that it is not ready', async () => {
      const { broker, url, httpUrl } = await start()
      const { client } = startClient(url)
      await client.listen('a', () => undefined).ready
      const probe = async (path: string) => {
        const response = await fetch(`${httpUrl}${path}`)
        return { status: response.status, body: await response.text() }
      }
      expect(await probe('/ready')).toMatchObject({ status: 200 })
      broker.lose(new Error('ECONNRESET'))
      const ready = await probe('/ready')
      expect(ready.status).toBe(503)
      expect(JSON.parse(ready.body)).toEqual({
        status: 'broker-down',
        broker: { name: 'faulty', status: 'down', reason: 'ECONNRESET', sinceMs: expect.any(Number) },
      })
      expect(await probe('/health')).toMatchObject({ status: 200 })
      const metrics = await probe('/metrics')
      expect(metrics.body).toContain('\nwebmq_broker_status{status="down"} 1\n')
      expect(metrics.body).toContain('\nwebmq_connections 1\n')
      broker.block()
      expect(await probe('/ready')).toMatchObject({ status: 200 })
      broker.recover('broker-lost')
      expect(await probe('/ready')).toMatchObject({ status: 200 })
      expect(client.state).toBe('connected')
    })
  },
)
