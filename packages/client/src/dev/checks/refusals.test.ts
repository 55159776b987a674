import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { WebMQClient } from '../../index.js'
import { createTestServer } from '../testing/index.js'

const fetched: [string, RequestMode | undefined, RequestCredentials | undefined][] = []
let answer: (mode: RequestMode | undefined, url: string) => Response | Promise<Response> = () => new Response('')
let Client: typeof WebMQClient
const written = vi.spyOn(console, 'warn')

beforeEach(async () => {
  vi.resetModules()
  Client = (await import('../../development.js')).WebMQClient
  fetched.length = 0
  written.mockReset().mockReturnValue()
  vi.stubGlobal('location', { origin: 'https://app.example', href: 'https://app.example/' })
  vi.stubGlobal('fetch', async (url: string, { mode, credentials }: RequestInit) => {
    fetched.push([url, mode, credentials])
    return answer(mode, url)
  })
})
afterEach(() => {
  vi.unstubAllGlobals()
})

const endpoint = (members: object, status = 426) => {
  const body = { code: 'E_HANDSHAKE_INVALID', server: 'webmq', path: '/ws', originAllowed: true, ...members }
  return () => Response.json(body, { status })
}
const nothing = () => Promise.reject(new TypeError('Failed to fetch'))

function refusedClient(url: string) {
  const server = createTestServer()
  server.isUp = false
  const client = new Client({ url, WebSocket: server.WebSocket, random: () => 0.1 })
  return { client, server }
}

/** Browsers tell 1006 for a wrong path, a forbidden origin, another server and none: developers had to guess. */
describe('a refused upgrade', () => {
  it.each<[string, typeof answer, string]>([
    ['wrong-path', endpoint({ code: 'E_PATH_NOT_FOUND', path: '/live' }, 404), 'wrong path: the endpoint is /live'],
    [
      'origin',
      endpoint({ originAllowed: false }),
      'origin not allowed: start the server with --origin https://app.example',
    ],
    ['foreign', () => new Response('<html>'), 'not a WebMQ server: http://foreign:1/ws is answered by something else'],
    ['json', () => Response.json([]), 'not a WebMQ server'],
    ['older', endpoint({ server: undefined }), 'http://older:1/ws takes upgrades, but does not say that it is WebMQ'],
    ['other', () => new Response('Upgrade Required', { status: 426 }), 'http://other:1/ws takes upgrades'],
    ['opaque', (mode) => (mode === 'cors' ? nothing() : new Response('')), 'not a WebMQ server'],
    ['nobody', nothing, 'nothing answers at nobody:1: is the server running?'],
    ['rewritten', endpoint({ path: '/inner', originAllowed: false }), 'origin not allowed'],
    ['proxy', endpoint({}), 'is a proxy in front that does not forward WebSockets?'],
    ['gateway', () => new Response('', { status: 502 }), 'http://gateway:1/ws answers 502: is the server behind'],
  ])('is explained in the console, once, and in the status: %s', async (host, given, reason) => {
    answer = given
    const { client, server } = refusedClient(`ws://${host}:1/ws`)
    client.listen('a', () => undefined)
    await vi.waitFor(() => expect(client.status.lastError?.message).toContain(reason))
    await vi.waitFor(() => expect(client.status.attempt).toBeGreaterThan(2))
    expect(client.status.lastError).toMatchObject({
      code: 'E_CONNECT_FAILED',
      message: expect.stringContaining(reason),
    })
    expect(written.mock.calls).toEqual([[expect.stringContaining(reason)]])
    const modes = new Set(fetched.map(([, mode]) => mode))
    expect(fetched.length).toBe(modes.size)
    expect(fetched[0]).toEqual([`http://${host}:1/ws`, 'cors', 'same-origin'])
    server.isUp = true
    await client.connect()
    expect(client.status.lastError).toBeUndefined()
    await client.close()
  })

  it('of a server that does not speak TLS is told to do without', async () => {
    answer = (_mode, url) => (url.startsWith('https:') ? nothing() : new Response(''))
    const { client } = refusedClient('wss://plain:1/ws')
    client.listen('a', () => undefined)
    const reason = 'plain:1 does not speak TLS: is it ws://plain:1?'
    await vi.waitFor(() => expect(client.status.lastError?.message).toContain(reason))
    await client.close()
  })

  it('of a page on the dev server of its app is told to pass the path on', async () => {
    vi.stubGlobal('location', { origin: 'http://dev:1', href: 'http://dev:1/' })
    answer = () => new Response('<html>')
    const { client } = refusedClient('/ws')
    client.listen('a', () => undefined)
    const reason = "http://dev:1/ws is answered by the page's own server, which must pass /ws on to WebMQ: https://"
    await vi.waitFor(() => expect(client.status.lastError?.message).toContain(reason))
    await client.close()
  })

  it('whose server never answers is searched for too, after the time of the attempt', async () => {
    answer = nothing
    class Silent {
      binaryType = 'blob'
      readonly bufferedAmount = 0
      onopen = null
      onmessage = null
      onerror = null
      onclose = null
      send = () => undefined
      close = () => undefined
    }
    const client = new Client({ url: 'ws://mute:1/ws', WebSocket: Silent, connectTimeoutMs: 20 })
    client.listen('a', () => undefined)
    await vi.waitFor(() => expect(written.mock.calls).toEqual([[expect.stringContaining('nothing answers at mute:1')]]))
    await client.close()
  })

  // Vite without a proxy never answers an upgrade: nothing was printed for 10 s, the time of an attempt.
  it('is not waited for when the page asks its own server, which knows nothing of upgrades', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    vi.stubGlobal('location', { origin: 'http://vite:1', href: 'http://vite:1/' })
    answer = () => new Response('<html>')
    const { client, server } = refusedClient('/ws')
    server.isUp = true
    server.isSilent = true
    client.listen('a', () => undefined)
    await vi.advanceTimersByTimeAsync(1_400)
    expect(fetched).toEqual([])
    await vi.advanceTimersByTimeAsync(200)
    const reason = "http://vite:1/ws is answered by the page's own server"
    await vi.waitFor(() => expect(written.mock.calls).toEqual([[expect.stringContaining(reason)]]))
    expect(client.status.lastError?.message).toContain(`no answer for 1500 ms: ${reason}`)
    await client.close()
  })

  it('that only takes its time is no mistake', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    answer = endpoint({})
    const { client, server } = refusedClient('ws://sluggish:1/ws')
    server.isUp = true
    server.isSilent = true
    client.listen('a', () => undefined)
    await vi.advanceTimersByTimeAsync(1_600)
    await vi.waitFor(() => expect(fetched).toHaveLength(1))
    await new Promise(setImmediate)
    expect(client.status.lastError).toBeUndefined()
    await client.close()
    expect(written).not.toHaveBeenCalled()
    expect(vi.getTimerCount()).toBe(0)
  })

  it('by a network that was away prints nothing', async () => {
    const { client, server } = refusedClient('ws://away:1/ws')
    answer = nothing
    server.isUp = true
    await client.connect()
    server.isUp = false
    server.drop()
    await vi.waitFor(() => expect(client.status.lastError?.message).toContain('nothing answers at away:1'))
    server.isUp = true
    await client.connect()
    expect(written).not.toHaveBeenCalled()
    vi.stubGlobal('navigator', { onLine: false })
    const { client: offline } = refusedClient('ws://offline:1/ws')
    fetched.length = 0
    offline.listen('a', () => undefined)
    await vi.waitFor(() => expect(offline.status.attempt).toBeGreaterThan(2))
    expect([fetched, written.mock.calls]).toEqual([[], []])
    await offline.close()
    await client.close()
  })

  it('is not searched for without fetch, or after the first failure of a lasting connection', async () => {
    vi.stubGlobal('fetch', undefined)
    const { client, server } = refusedClient('ws://old:1/ws')
    client.listen('a', () => undefined)
    await vi.waitFor(() => expect(client.status.attempt).toBeGreaterThan(2))
    expect(client.status.lastError?.message).toMatch(
      /^could not connect: closed \(1006\) \(https:\S+#e_connect_failed\)$/,
    )
    server.isUp = true
    await client.connect()
    await client.close()
    expect(written).not.toHaveBeenCalled()
  })

  it('is not waited for: the next attempts do not depend on it, and closing ends it', async () => {
    const signals: (AbortSignal | null | undefined)[] = []
    vi.stubGlobal('fetch', (_url: string, { signal }: RequestInit) => {
      signals.push(signal)
      return new Promise(() => undefined)
    })
    const { client, server } = refusedClient('ws://slow:1/ws')
    client.listen('a', () => undefined)
    await vi.waitFor(() => expect(signals).toHaveLength(1))
    server.isUp = true
    await client.connect()
    expect(signals[0]?.aborted).toBe(true)
    await client.close()
  })
})
