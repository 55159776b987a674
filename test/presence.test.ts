import { describe, expect, it, vi } from 'vitest'
import { type Presence, presence } from 'webmq-client/parts'
import { startClient, startServer } from './live.js'
import { signedToken, TOKEN_SECRET } from './signed-token.js'

const KEY = 'room.1'

describe.each(['native', 'ws', 'uws'] as const)('presence of clients on a server, transport %s', (transport) => {
  const start = () => startServer({ transport, jwt: { secret: TOKEN_SECRET } })

  const startUser = (url: string, userId: string) => startClient(url, { token: signedToken(userId, 600, ['room.*']) })

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
    const { url, server } = await start()
    const [ada, tab, bob] = [startUser(url, 'ada'), startUser(url, 'ada'), startUser(url, 'bob')]
    const told = follow(presence<string>(KEY, { client: bob.client }))
    const room = presence<string>(KEY, { client: ada.client })
    await room.enter('one')
    await presence<string>(KEY, { client: tab.client }).enter('two')
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
    const { url } = await start()
    const [ada, bob] = [startUser(url, 'ada'), startUser(url, 'bob')]
    const [ofAda, ofBob] = [
      presence<string>(KEY, { client: ada.client }),
      presence<string>(KEY, { client: bob.client }),
    ]
    await ofAda.enter('here')
    const { id } = ofAda
    const [toldAda, toldBob] = [follow(ofAda), follow(ofBob)]
    await vi.waitFor(() => expect(toldBob).toEqual(['enter ada here', 'user-enter ada']))
    const back = new Promise<void>((resolve) =>
      ada.client.on('status', ({ state }, previous) => state === 'connected' && previous.state !== state && resolve()),
    )
    void ada.cut()
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
    const { url } = await start()
    const { client } = startUser(url, 'ada')
    client.on('error', () => undefined)
    await expect(presence('secret', { client }).enter()).rejects.toMatchObject({ code: 'E_FORBIDDEN' })
    await expect(presence('secret', { client }).get()).rejects.toMatchObject({ code: 'E_FORBIDDEN' })
  })
})
