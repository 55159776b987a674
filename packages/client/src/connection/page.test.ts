import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { watchedClient as watched } from '../../test/watched-client.js'

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
