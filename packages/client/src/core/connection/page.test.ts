import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { watchedClient as watched } from '../../../test/watched-client.js'
import { createTestServer } from '../../dev/testing/index.js'
import type { WebSocketConstructor } from '../../index.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

const settle = () => vi.advanceTimersByTimeAsync(0)

describe('in a page', () => {
  function stubPage() {
    const page = Object.assign(new EventTarget(), { visibilityState: 'visible' })
    const navigator = { onLine: true }
    const window = new EventTarget()
    vi.stubGlobal('document', page)
    vi.stubGlobal('navigator', navigator)
    vi.stubGlobal('addEventListener', window.addEventListener.bind(window))
    vi.stubGlobal('removeEventListener', window.removeEventListener.bind(window))
    return { page, navigator, window }
  }

  it('does not wait for the next attempt when the network is back', async () => {
    const { window } = stubPage()
    const { client, server } = watched()
    server.isUp = false
    client.listen('a', () => undefined)
    await vi.advanceTimersByTimeAsync(60_000)
    server.isUp = true
    window.dispatchEvent(new Event('online'))
    await vi.advanceTimersByTimeAsync(250)
    expect(client.state).toBe('connected')
  })

  // The request of each attempt for a token failed, and a stack was printed, 5 in 7 s.
  it('prints nothing of tokens that could not be had while it is offline', async () => {
    const { navigator, window } = stubPage()
    const printed = vi.spyOn(console, 'error').mockReturnValue()
    onTestFinished(() => printed.mockRestore())
    navigator.onLine = false
    const token = vi.fn(async () => {
      if (!navigator.onLine) throw new TypeError('Failed to fetch')
      return 'good'
    })
    const { client } = watched({ token })
    client.listen('a', () => undefined)
    await vi.advanceTimersByTimeAsync(7_000)
    expect(client.status).toMatchObject({ lost: true, lastError: { code: 'E_TOKEN_UNAVAILABLE' } })
    expect(token).toHaveBeenCalled()
    expect(printed).not.toHaveBeenCalled()
    navigator.onLine = true
    window.dispatchEvent(new Event('online'))
    await vi.advanceTimersByTimeAsync(500)
    expect(client.state).toBe('connected')
  })

  /** An attempt that hangs, as on a network that swallows everything. */
  async function hang(ageMs: number) {
    const { client, server } = watched()
    server.isSilent = true
    client.listen('a', () => undefined)
    await vi.advanceTimersByTimeAsync(ageMs)
    server.isSilent = false
    return client
  }

  // A phone or laptop that woke up was offline for up to 12 s more. An attempt that had begun on the dead network was
  // waited for, and a wake-up did nothing while one ran.
  it.each([
    ['online', ({ window }: ReturnType<typeof stubPage>) => window.dispatchEvent(new Event('online'))],
    ['visibilitychange', ({ page }: ReturnType<typeof stubPage>) => page.dispatchEvent(new Event('visibilitychange'))],
    ['resume', ({ page }: ReturnType<typeof stubPage>) => page.dispatchEvent(new Event('resume'))],
  ])('begins a new attempt on %s when one hangs', async (_, wake) => {
    const stub = stubPage()
    const client = await hang(2_000)
    wake(stub)
    await vi.advanceTimersByTimeAsync(250)
    expect(client.state).toBe('connected')
  })

  it('begins a new attempt when the app asks for one while one hangs', async () => {
    const client = await hang(2_000)
    void client.connect()
    await settle()
    expect(client.state).toBe('connected')
  })

  it('lets an attempt go on that has just begun', async () => {
    const { window } = stubPage()
    const client = await hang(1_900)
    window.dispatchEvent(new Event('online'))
    await vi.advanceTimersByTimeAsync(500)
    expect(client.state).toBe('connecting')
  })

  it('gives later attempts more time, so that an app that asks for one each second lets a slow network connect', async () => {
    const server = createTestServer()
    server.isSilent = true
    const begunAtMs: number[] = []
    const WebSocket = class extends (server.WebSocket as unknown as new (...args: unknown[]) => object) {
      constructor(...args: unknown[]) {
        super(...args)
        begunAtMs.push(performance.now() - startedAtMs)
      }
    } as unknown as WebSocketConstructor
    const startedAtMs = performance.now()
    const { client } = watched({ server: Object.assign(server, { WebSocket }), connectTimeoutMs: 60_000 })
    for (let second = 0; second < 30; second++) {
      void client.connect()
      await vi.advanceTimersByTimeAsync(1_000)
    }
    expect(begunAtMs).toEqual([0, 2_000, 6_000, 14_000])
  })

  // After a minute of refusals, an `online` that came before the network worked was followed by waits of up to 20 s.
  // The wake-up began one attempt, and the wait after it went on doubling.
  it('waits after a wake-up as after a first failure', async () => {
    const { window } = stubPage()
    const { client, server, changes } = watched()
    server.isUp = false
    client.listen('a', () => undefined)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(changes.at(-1)?.retryInMs).toBe(10_000)
    window.dispatchEvent(new Event('online'))
    await vi.advanceTimersByTimeAsync(250)
    expect(changes.at(-1)).toMatchObject({ attempt: 1, retryInMs: 250 })
  })

  it('still stays away as long as the server asks', async () => {
    const { window } = stubPage()
    const { client, server } = watched()
    await client.connect()
    server.drop({ code: 4001, retryAfterMs: 30_000 })
    await settle()
    window.dispatchEvent(new Event('online'))
    await vi.advanceTimersByTimeAsync(29_999)
    expect(server.connectionCount).toBe(0)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(server.connectionCount).toBe(1)
  })

  it.each(['visibilitychange', 'resume'])(
    'finds out quickly on %s whether the connection has survived',
    async (event) => {
      const { page } = stubPage()
      const { client, server, changes } = watched()
      await client.connect()
      page.dispatchEvent(new Event(event))
      await vi.advanceTimersByTimeAsync(3_000)
      expect(server.received.map(({ verb }) => verb)).toEqual(['ping'])
      expect(client.state).toBe('connected')
      server.isSilent = true
      page.dispatchEvent(new Event(event))
      await vi.advanceTimersByTimeAsync(2_000)
      expect(changes.at(-1)).toMatchObject({ state: 'reconnecting', code: 4003 })
    },
  )

  it('does not ping when the page is being hidden', async () => {
    const { page } = stubPage()
    const { client, server } = watched()
    await client.connect()
    page.visibilityState = 'hidden'
    page.dispatchEvent(new Event('visibilitychange'))
    await settle()
    expect(server.received).toEqual([])
  })

  it('treats the connection of a page from the back/forward cache as lost', async () => {
    const { window } = stubPage()
    const { client, server, states } = watched()
    await client.connect()
    window.dispatchEvent(new Event('pageshow'))
    await settle()
    expect(client.state).toBe('connected')
    window.dispatchEvent(Object.assign(new Event('pageshow'), { persisted: true }))
    await vi.advanceTimersByTimeAsync(250)
    expect(states()).toEqual(['connecting', 'connected', 'reconnecting', 'connected'])
    expect(server.connectionCount).toBe(1)
  })

  it('makes no attempt while the page is hidden and offline', async () => {
    const { page, navigator, window } = stubPage()
    const { client, server } = watched()
    await client.connect()
    page.visibilityState = 'hidden'
    navigator.onLine = false
    server.drop()
    await vi.advanceTimersByTimeAsync(600_000)
    expect(client.state).toBe('reconnecting')
    navigator.onLine = true
    window.dispatchEvent(new Event('online'))
    await vi.advanceTimersByTimeAsync(250)
    expect(client.state).toBe('connected')
  })

  it('ignores page events after close', async () => {
    const { page, window } = stubPage()
    const looked = vi.fn(() => 'visible')
    Object.defineProperty(page, 'visibilityState', { get: looked })
    const { client } = watched()
    await client.connect()
    await client.close()
    looked.mockClear()
    page.dispatchEvent(new Event('visibilitychange'))
    window.dispatchEvent(new Event('online'))
    expect(looked).not.toHaveBeenCalled()
    expect(vi.getTimerCount()).toBe(0)
  })
})
