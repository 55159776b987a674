import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { WebMQClient } from '../../index.js'
import { eventStreams } from './index.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

type Answer = readonly [status: number, body: string]

const PATHS = ['/health', '/sse', '/api/publish'] as const

/** A server behind a proxy, which answers by itself while `answer` is set. */
function meet(path: (typeof PATHS)[number]) {
  const proxy: { answer: Answer | undefined; readonly asked: string[] } = { answer: undefined, asked: [] }
  vi.stubGlobal('fetch', async (url: URL, { signal }: RequestInit) => {
    const { pathname } = new URL(url)
    proxy.asked.push(pathname)
    if (proxy.answer && pathname === path) return new Response(proxy.answer[1], { status: proxy.answer[0] })
    if (pathname === '/health') return Response.json({ server: 'webmq' })
    if (pathname === '/api/publish') return Response.json({ position: 'e:1.AAAAA', duplicate: false })
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode('id: e:0.AAAAA\nevent: live\ndata: {}\n\n'))
        signal?.addEventListener('abort', () => controller.error(signal.reason))
      },
    })
    return new Response(body)
  })
  const client = new WebMQClient({ url: 'ws://test.invalid/ws', WebSocket: eventStreams({ WebSocket: null }) })
  client.on('error', () => undefined)
  return { client, proxy }
}

/** What proxies, routers and frameworks answer while a service has no route. */
const FOREIGN: readonly Answer[] = [
  [404, '404 page not found'],
  [403, '<html>forbidden</html>'],
  [401, '{"message":"no"}'],
  [404, '{"code":"E_ROUTE_NOT_FOUND","message":"Cannot POST /api/publish"}'],
  [403, 'null'],
  [503, ''],
]

describe('event streams behind a proxy that answers by itself', () => {
  // Symptom: a publish was refused for good by a router that has codes of this form. Its answer was taken for the server's.
  it.each(PATHS.flatMap((path) => FOREIGN.map((answer) => [path, ...answer] as const)))(
    'go on after %s: %i %s',
    async (path, ...answer) => {
      const { client, proxy } = meet(path)
      proxy.answer = answer
      const subscription = client.listen('a', () => undefined)
      const published = client.publish('a', 1)
      await vi.advanceTimersByTimeAsync(6_000)
      expect(client.state).not.toBe('closed')
      expect(proxy.asked.filter((asked) => asked === path).length).toBeGreaterThan(1)
      proxy.answer = undefined
      void client.connect()
      await vi.advanceTimersByTimeAsync(2_000)
      expect(await published).toMatchObject({ position: 'e:1.AAAAA' })
      expect(subscription.state).toBe('active')
      await client.close({ flushMs: 0 })
    },
  )

  it('believe the server itself', async () => {
    const { client, proxy } = meet('/api/publish')
    proxy.answer = [403, '{"code":"E_FORBIDDEN","message":"not allowed","docs":"https://…"}']
    await expect(client.publish('a', 1)).rejects.toMatchObject({ code: 'E_FORBIDDEN' })
    await client.close({ flushMs: 0 })
  })
})
