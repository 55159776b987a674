import { Agent, get } from 'node:http'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { createServer } from 'webmq-server'
import { startLoadBalancer } from 'webmq-services'
import { startChromium } from './chromium.js'

let browser: Browser

beforeAll(async () => {
  browser = await startChromium()
})

afterAll(async () => {
  await browser?.close()
})

it.each(['native', 'ws'] as const)(
  'EventSource of Chromium reads, and goes on behind its last position (%s)',
  async (transport) => {
    const server = createServer({ port: 0, logLevel: 'silent', transport, history: ['#=100,1h'], closeTimeoutMs: 500 })
    onTestFinished(() => server.stop({ drainMs: 0 }))
    const { port } = await server.start()
    const page = await browser.newPage()
    onTestFinished(() => page.close())
    // The stream is a later request of this connection.
    await page.goto(`http://127.0.0.1:${port}/health`)
    /** Reads up to this number of messages. */
    const read = (query: string, count: number) =>
      page.evaluate(
        ([path, wanted]) =>
          new Promise<[unknown, string][]>((resolve) => {
            const events = new EventSource(path)
            const seen: [unknown, string][] = []
            events.onmessage = ({ data, lastEventId }) => {
              seen.push([JSON.parse(data), lastEventId])
              if (seen.length < wanted) return
              events.close()
              resolve(seen)
            }
          }),
        [`/sse?listen=%23${query}`, count] as const,
      )
    for (const text of ['one', 'two\nlines']) await server.publish('a', { text })
    const first = await read('&last=2', 2)
    expect(first.map(([message]) => message)).toEqual([
      { key: 'a', replay: true, payload: { text: 'one' } },
      { key: 'a', replay: true, payload: { text: 'two\nlines' } },
    ])
    await server.publish('b', 3)
    const [, [, lastEventId] = []] = first
    expect((await read(`&since=${lastEventId}`, 1)).map(([message]) => message)).toEqual([
      { key: 'b', replay: true, payload: 3 },
    ])
  },
)

// Symptom: 6 of 40 EventSources ended in ERR_TOO_MANY_REDIRECTS. Cause: only the first request of a connection could become a
// stream, and a balancer reuses its connections to a node.
it.each(['haproxy', 'nginx'] as const)(
  'EventSource of Chromium opens through %s over connections that have served requests',
  async (program) => {
    const server = createServer({ port: 0, logLevel: 'silent', trustedProxies: ['127.0.0.1'], insecure: true })
    onTestFinished(() => server.stop({ drainMs: 0 }))
    const { port } = await server.start()
    await using balancer = await startLoadBalancer({ ports: [port], program })
    // Sessions of others.
    const agent = new Agent({ keepAlive: true })
    onTestFinished(() => agent.destroy())
    const ask = () =>
      new Promise<number | undefined>((resolve, reject) => {
        get(`${balancer.url}/health`, { agent }, (response) => {
          response.resume().once('end', () => resolve(response.statusCode))
        }).once('error', reject)
      })
    await expect.poll(ask).toBe(200)
    const page = await browser.newPage()
    onTestFinished(() => page.close())
    const redirected: string[] = []
    page.on('response', (response) => {
      if (response.status() !== 200) redirected.push(`${response.status()} ${response.url()}`)
    })
    await page.goto(`${balancer.url}/health`)
    for (let round = 0; round < 20; round++) {
      await Promise.all(Array.from({ length: 8 }, ask))
      const opened = page.evaluate(async () => {
        await (await fetch('/health')).text()
        const events = new EventSource('/sse?listen=a')
        return new Promise<string>((resolve) => {
          events.onopen = () => resolve('open')
          events.onerror = () => resolve('error')
        }).finally(() => events.close())
      })
      expect(await opened).toBe('open')
    }
    expect(redirected).toEqual([])
  },
)
