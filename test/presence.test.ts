import { afterEach, describe, expect, it, vi } from 'vitest'
import { WebMQClient } from 'webmq-client'
import { type Presence, presence } from 'webmq-client/presence'
import { createServer, type ServerOptions } from 'webmq-server'
import { WebSocket } from 'ws'
import { signedToken, TOKEN_SECRET } from './signed-token.js'

const KEY = 'room.1'

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

describe.each(['native', 'uws'] as const)('presence of clients on a server, transport %s', (transport) => {
  async function startServer(options: ServerOptions = {}) {
    const server = createServer({ port: 0, logLevel: 'silent', transport, jwt: { secret: TOKEN_SECRET }, ...options })
    const { url } = await server.start()
    closers.push(() => server.stop({ drainMs: 0 }))
    return { server, url }
  }

  /** A client of a user, whose connection a test may cut as a failing network does. */
  function startClient(url: string, userId: string) {
    const sockets: WebSocket[] = []
    class WatchedWebSocket extends WebSocket {
      constructor(address: string, protocols: string[]) {
        super(address, protocols)
        sockets.push(this)
      }
    }
    const token = signedToken(userId, 600, ['room.*'])
    const client = new WebMQClient({ url, token, WebSocket: WatchedWebSocket, random: () => 0.1 })
    closers.push(() => client.close({ flushMs: 0 }))
    return { client, cut: () => sockets.at(-1)?.terminate() }
  }

  /** What happens at the key, in words. */
  function follow(room: Presence<string>): string[] {
    const told: string[] = []
    for (const event of ['enter', 'update', 'leave'] as const)
      room.on(event, ({ userId, data }) => told.push(`${event} ${userId} ${data}`))
    for (const event of ['user-enter', 'user-leave'] as const)
      room.on(event, ({ userId }) => told.push(`${event} ${userId}`))
    return told
  }

  it('shows who comes, changes and goes, by member and by user', async () => {
    const { url, server } = await startServer()
    const [ada, tab, bob] = [startClient(url, 'ada'), startClient(url, 'ada'), startClient(url, 'bob')]
    const told = follow(presence<string>(bob.client, KEY))
    const room = presence<string>(ada.client, KEY)
    await room.enter('one')
    await presence<string>(tab.client, KEY).enter('two')
    await vi.waitFor(() => expect(told).toContain('enter ada two'))
    await room.update('away')
    await vi.waitFor(() => expect(told.at(-1)).toBe('update ada away'))
    expect(await room.users()).toMatchObject([{ userId: 'ada', members: [{}, {}] }])
    expect(await server.presence(KEY)).toHaveLength(2)
    await room.leave()
    await vi.waitFor(() => expect(told.at(-1)).toBe('leave ada away'))
    await tab.client.close()
    await vi.waitFor(() => expect(told.slice(-2)).toEqual(['leave ada two', 'user-leave ada']))
    expect(told.filter((text) => text.startsWith('user'))).toEqual(['user-enter ada', 'user-leave ada'])
  })

  it('hides a connection that breaks and comes back, and tells its client what it has missed', async () => {
    const { url } = await startServer()
    const [ada, bob] = [startClient(url, 'ada'), startClient(url, 'bob')]
    const [ofAda, ofBob] = [presence<string>(ada.client, KEY), presence<string>(bob.client, KEY)]
    await ofAda.enter('here')
    const { id } = ofAda
    const [toldAda, toldBob] = [follow(ofAda), follow(ofBob)]
    await vi.waitFor(() => expect(toldBob).toEqual(['enter ada here', 'user-enter ada']))
    const back = new Promise((resolve) => ada.client.on('reconnected', resolve))
    ada.cut()
    await ofBob.enter('meanwhile')
    await back
    await vi.waitFor(() => expect(toldAda.slice(-2)).toEqual(['enter bob meanwhile', 'user-enter bob']))
    await ofAda.update('still')
    await vi.waitFor(() => expect(toldBob.at(-1)).toBe('update ada still'))
    expect(toldBob.filter((text) => text.includes('ada'))).toEqual([
      'enter ada here',
      'user-enter ada',
      'update ada still',
    ])
    expect(ofAda.id).toBe(id)
  })

  it('is refused where listening is', async () => {
    const { url } = await startServer()
    const { client } = startClient(url, 'ada')
    client.on('error', () => undefined)
    await expect(presence(client, 'secret').enter()).rejects.toMatchObject({ code: 'E_FORBIDDEN' })
    await expect(presence(client, 'secret').get()).rejects.toMatchObject({ code: 'E_FORBIDDEN' })
  })
})
