import { describe, expect, it, vi } from 'vitest'
import type { WebMQClient } from 'webmq-client'
import { freePort } from 'webmq-services'
import { useOwnClock } from '../packages/server/test/own-clock.js'
import { startClient, startServer } from './live.js'
import { signedToken, TOKEN_SECRET } from './signed-token.js'

describe.each(['native', 'ws', 'uws'] as const)('client and server, transport %s', (transport) => {
  /** Payloads that come for a pattern. */
  async function collect(client: WebMQClient, pattern: string) {
    const payloads: unknown[] = []
    const subscription = client.listen(pattern, (payload) => payloads.push(payload))
    await subscription.ready
    return { payloads, subscription }
  }

  it('brings messages to exact, * and # patterns of another client, text and bytes', async () => {
    const { url } = await startServer({ transport })
    const { client } = startClient(url)
    const { client: other } = startClient(url)
    const patterns = ['chat.42.message', 'chat.*.message', 'chat.#', '#', 'chat.*', 'chat.42.#.message']
    const collected = await Promise.all(patterns.map((pattern) => collect(client, pattern)))
    const bytes = new Uint8Array([0, 10, 255])
    await other.publish('chat.42.message', { text: 'grüß' })
    await other.publish('chat', 2)
    await other.publish('chat.42', bytes)
    const message = { text: 'grüß' }
    await vi.waitFor(() => expect(collected[3]?.payloads).toHaveLength(3))
    expect(collected.map(({ payloads }) => payloads)).toEqual([
      [message],
      [message],
      [message, 2, bytes],
      [message, 2, bytes],
      [bytes],
      [message],
    ])
  })

  it('continues after a cut connection: nothing missing, nothing twice, in order', async () => {
    const { url } = await startServer({ transport })
    const { client, cut, changes, gaps } = startClient(url)
    const { client: other } = startClient(url)
    const wide = await collect(client, 'a.#')
    const narrow = await collect(client, 'a.even')
    for (let n = 1; n <= 300; n++) {
      if (n % 100 === 50) void cut()
      // What is published until here is missed, the rest is live again.
      if (n % 100 === 80) await vi.waitFor(() => expect(client.state).toBe('connected'))
      await other.publish(n % 2 === 0 ? 'a.even' : 'a.odd', n)
    }
    await vi.waitFor(() => expect(wide.payloads.at(-1)).toBe(300))
    const all = Array.from({ length: 300 }, (_, index) => index + 1)
    expect(wide.payloads).toEqual(all)
    expect(narrow.payloads).toEqual(all.filter((n) => n % 2 === 0))
    expect(changes.filter(({ state }) => state === 'reconnecting')).toHaveLength(3)
    expect(gaps).toEqual([])
    expect(await wide.subscription.ready).toMatchObject({ recovered: true })
  })

  it('says gap when the log has lost what was missed', async () => {
    const { server, url } = await startServer({ transport, historyMaxMessages: 10 })
    const { client, cut, gaps } = startClient(url, { random: () => 0.5 })
    const { payloads, subscription } = await collect(client, 'a')
    const { position } = await subscription.ready
    void cut()
    await vi.waitFor(() => expect(client.state).toBe('reconnecting'))
    // All at once: it comes back a quarter of a second later, however slow the machine is.
    await server.publishBatch(Array.from({ length: 30 }, (_, index) => ({ key: 'a', payload: index + 1 })))
    await vi.waitFor(() => expect(payloads.at(-1)).toBe(30))
    expect(payloads).toEqual([21, 22, 23, 24, 25, 26, 27, 28, 29, 30])
    expect(gaps).toEqual([{ pattern: 'a', reason: 'history-expired', since: position }])
  })

  it('returns to a server that was restarted, says gap, and delivers what was published meanwhile', async () => {
    const port = await freePort()
    const { server } = await startServer({ transport, port })
    const { client, changes, gaps } = startClient(`ws://127.0.0.1:${port}/ws`)
    const { payloads, subscription } = await collect(client, 'a')
    await client.publish('a', 1)
    await server.stop({ drainMs: 0 })
    await vi.waitFor(() => expect(client.state).toBe('reconnecting'))
    expect(changes.find(({ state }) => state === 'reconnecting')).toMatchObject({
      code: 4001,
      lastError: { code: 'E_DRAIN' },
    })
    const published = [client.publish('a', 2), client.publish('a', 3)]
    await startServer({ transport, port })
    expect(await Promise.all(published)).toMatchObject([{ duplicate: false }, { duplicate: false }])
    expect(await subscription.ready).toMatchObject({ recovered: false, gap: 'epoch-changed' })
    await vi.waitFor(() => expect(payloads).toEqual([1, 2, 3]))
    expect(gaps).toMatchObject([{ pattern: 'a', reason: 'epoch-changed' }])
  })

  it('delivers a message once whose acknowledgement was lost with the connection', async () => {
    const { url } = await startServer({ transport })
    const { client, sockets, cut } = startClient(url)
    const { client: other } = startClient(url)
    const { payloads } = await collect(other, 'a')
    await client.connect()
    const [socket] = sockets
    if (!socket) throw new Error('no socket')
    // From here on the client hears nothing on this connection.
    socket.onmessage = null
    const published = client.publish('a', 'once')
    await vi.waitFor(() => expect(payloads).toEqual(['once']))
    void cut()
    const { id, position } = await published
    expect(await client.publish('a', 'once', { id })).toEqual({ id, duplicate: true, position })
    await client.publish('a', 'end')
    await vi.waitFor(() => expect(payloads.at(-1)).toBe('end'))
    expect(payloads).toEqual(['once', 'end'])
  })

  it('renews its token on the same connection, and ends what the new one does not grant', async () => {
    const clock = useOwnClock()
    const { url } = await startServer({ transport, jwt: { secret: TOKEN_SECRET } })
    const causes: string[] = []
    const { client, sockets, changes } = startClient(url, {
      token: ({ cause }) => {
        causes.push(cause)
        return cause === 'initial' ? signedToken('ann', 20) : signedToken('ann', 60, ['chat.#'])
      },
    })
    const errors: unknown[] = []
    client.on('error', ({ error, pattern }) => errors.push([pattern, error]))
    const chat = await collect(client, 'chat.*')
    const admin = await collect(client, 'admin.#')
    clock.putForward(16_000)
    await vi.waitFor(() => expect(admin.subscription.state).toBe('closed'))
    expect(causes).toEqual(['initial', 'expiring'])
    expect(errors).toContainEqual(['admin.#', expect.objectContaining({ code: 'E_FORBIDDEN' })])
    await client.publish('chat.1', 'still here')
    await vi.waitFor(() => expect(chat.payloads).toEqual(['still here']))
    await expect(client.publish('admin.1', 1)).rejects.toMatchObject({ code: 'E_FORBIDDEN' })
    await expect(client.listen('#', () => undefined).ready).rejects.toMatchObject({ code: 'E_FORBIDDEN' })
    expect(sockets).toHaveLength(1)
    expect(changes.map(({ state }) => state)).toEqual(['connecting', 'connected'])
  })

  it('asks for another token when the server rejects one, once', async () => {
    const { url } = await startServer({ transport, jwt: { secret: TOKEN_SECRET } })
    const { client } = startClient(url, {
      token: ({ cause }) => (cause === 'rejected' ? signedToken('ann', 60) : 'no.such.token'),
    })
    await client.connect()
    const { client: hopeless, changes } = startClient(url, { token: 'no.such.token' })
    await expect(hopeless.connect()).rejects.toMatchObject({ code: 'E_TOKEN_INVALID' })
    expect(changes.at(-1)).toMatchObject({ state: 'closed', code: 4501 })
    const { client: nobody } = startClient(url)
    await expect(nobody.connect()).rejects.toMatchObject({ code: 'E_UNAUTHENTICATED' })
  })

  it('reconnects with a new token when the old one has run out', async () => {
    const clock = useOwnClock()
    const { url } = await startServer({ transport, jwt: { secret: TOKEN_SECRET, clockToleranceS: 0 } })
    let isExpiringIgnored = true
    const { client, changes } = startClient(url, {
      token: ({ cause }) => {
        if (cause !== 'expiring') return signedToken('ann', 20)
        if (!isExpiringIgnored) return signedToken('ann', 60)
        isExpiringIgnored = false
        return null
      },
    })
    const { payloads } = await collect(client, 'a')
    clock.putForward(20_000)
    await vi.waitFor(() => expect(changes.filter(({ state }) => state === 'connected')).toHaveLength(2))
    expect(changes.at(-2)).toMatchObject({ state: 'reconnecting', code: 4009, lastError: { code: 'E_TOKEN_EXPIRED' } })
    await client.publish('a', 1)
    await vi.waitFor(() => expect(payloads).toEqual([1]))
  })

  it('knows the limits of the server', async () => {
    const { url } = await startServer({ transport, maxPayloadBytes: 100, maxListensPerConnection: 1 })
    const { client } = startClient(url)
    client.on('error', () => undefined)
    await collect(client, 'a')
    await expect(client.publish('a', 'x'.repeat(99))).rejects.toThrow(
      'payload exceeds the limit: 101 bytes, at most 100',
    )
    await expect(client.listen('b', () => undefined).ready).rejects.toMatchObject({ code: 'E_LISTEN_LIMIT' })
    expect(await client.publish('a', 'x'.repeat(98))).toMatchObject({ duplicate: false })
  })
})
