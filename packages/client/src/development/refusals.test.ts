import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { WebMQClient } from '../index.js'
import { createTestServer } from '../testing/index.js'

const fetched: [string, RequestMode | undefined, RequestCredentials | undefined][] = []
let answer: (mode: RequestMode | undefined) => Response | Promise<Response> = () => new Response('')
let Client: typeof WebMQClient
const written = vi.spyOn(console, 'warn')

beforeEach(async () => {
  vi.resetModules()
  Client = (await import('../development.js')).WebMQClient
  fetched.length = 0
  written.mockReset().mockReturnValue()
  vi.stubGlobal('location', { origin: 'https://app.example', href: 'https://app.example/' })
  vi.stubGlobal('fetch', async (url: string, { mode, credentials }: RequestInit) => {
    fetched.push([url, mode, credentials])
    return answer(mode)
  })
})
afterEach(() => {
  vi.unstubAllGlobals()
})

const health = (members: object) => () =>
  Response.json({ status: 'ok', server: 'webmq', path: '/ws', originAllowed: true, ...members })
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
    ['wrong-path', health({ path: '/live' }), 'wrong path: the endpoint is /live'],
    [
      'origin',
      health({ originAllowed: false }),
      'origin not allowed: start the server with --origin https://app.example',
    ],
    [
      'foreign',
      () => new Response('<html>'),
      'not a WebMQ server: http://foreign:1/health is answered by something else',
    ],
    ['json', () => Response.json([]), 'not a WebMQ server'],
    ['opaque', (mode) => (mode === 'cors' ? nothing() : new Response('')), 'not a WebMQ server'],
    ['nobody', nothing, 'nothing answers at nobody:1: is the server running?'],
    ['proxy', health({}), 'is a proxy in front that does not forward WebSockets?'],
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
    expect(fetched[0]).toEqual([`http://${host}:1/health`, 'cors', 'omit'])
    server.isUp = true
    await client.connect()
    expect(client.status.lastError).toBeUndefined()
    await client.close()
  })

  it('is not searched for without fetch, or after the first failure of a lasting connection', async () => {
    vi.stubGlobal('fetch', undefined)
    const { client, server } = refusedClient('ws://old:1/ws')
    client.listen('a', () => undefined)
    await vi.waitFor(() => expect(client.status.attempt).toBeGreaterThan(2))
    expect(client.status.lastError?.message).toBe('could not connect: closed (1006)')
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
