import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createTestClient, createTestServer, type TestServer } from '../../dev/testing/index.js'
import { type Presence, type PresenceEvents, presence } from './index.js'
import { Rooms } from './rooms.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** Runs everything that needs no time. */
const settle = () => vi.advanceTimersByTimeAsync(0)
/** Longer than any first retry. */
const reconnect = () => vi.advanceTimersByTimeAsync(600)

const EVENTS = ['enter', 'update', 'leave', 'user-enter', 'user-leave', 'sync', 'error'] as const

/** Records the events of a handle, as text. */
function follow(room: Presence): string[] {
  const told: string[] = []
  for (const event of EVENTS) room.on(event, (value) => told.push(`${event} ${describeValue(event, value)}`))
  return told
}

function describeValue<E extends keyof PresenceEvents>(event: E, value: PresenceEvents[E]): string {
  if (event === 'sync') return (value as PresenceEvents['sync']).map(({ id }) => id).join()
  if (event === 'error') return (value as PresenceEvents['error']).code
  const { id = '', userId = '', data } = value as { id?: string; userId?: string; data?: unknown }
  return [id || userId, ...(data === undefined ? [] : [JSON.stringify(data)])].join(' ')
}

const sent = (server: TestServer) =>
  server.received.flatMap((message) => (message.verb === 'presence' ? [`${message.op} ${message.key}`] : []))

describe('presence', () => {
  it('enters, changes its data, and leaves', async () => {
    const { client, server } = createTestClient()
    const room = presence<{ name: string }>('room', { client })
    expect(room.id).toBeUndefined()
    await room.enter({ name: 'Ada' })
    expect(server.presence.members('room')).toEqual([{ id: room.id, data: { name: 'Ada' } }])
    await room.update({ name: 'Ada L.' })
    expect(server.presence.members('room')).toEqual([{ id: room.id, data: { name: 'Ada L.' } }])
    await room.leave()
    expect([server.presence.members('room'), room.id]).toEqual([[], undefined])
    await room.leave()
    expect(sent(server)).toEqual(['enter room', 'enter room', 'leave room'])
  })

  // Symptom: others saw a member with its old data for as long as its page was open, and `leave` did nothing. Cause: the client
  // took itself for absent after a refused update, and the server did not.
  it('is not present any more when an update is refused', async () => {
    const { client, server } = createTestClient()
    client.on('error', () => undefined)
    const room = presence('room', { client })
    await room.enter({ name: 'Ada' })
    server.refuse('presence', 'E_PAYLOAD_TOO_LARGE')
    await expect(room.update({ name: 'A'.repeat(99) })).rejects.toMatchObject({ code: 'E_PAYLOAD_TOO_LARGE' })
    await settle()
    expect([server.presence.members('room'), room.id]).toEqual([[], undefined])
    await room.enter({ name: 'Ada' })
    expect(server.presence.members('room')).toEqual([{ id: room.id, data: { name: 'Ada' } }])
  })

  it('uses one random name at every key', async () => {
    const { client, server } = createTestClient()
    await presence('a', { client }).enter()
    await presence('b', { client }).enter()
    const names = server.received.flatMap((message) => ('member' in message ? [message.member] : []))
    expect(names[0]).toMatch(/^[0-9a-f]{32}$/)
    expect(new Set(names).size).toBe(1)
  })

  it('returns the members and users without watching', async () => {
    const { client, server } = createTestClient()
    for (const [id, userId] of [
      ['1', 'ada'],
      ['2', 'bob'],
      ['3', 'ada'],
      ['4', undefined],
      ['5', undefined],
    ] as const)
      server.presence.enter('room', undefined, { id, ...(userId && { userId }) })
    const room = presence('room', { client })
    expect((await room.get()).map(({ id }) => id)).toEqual(['1', '2', '3', '4', '5'])
    const users = (await room.users()).map(({ userId, members }) => [userId, members.map(({ id }) => id).join()])
    expect(users).toEqual([
      ['ada', '1,3'],
      ['bob', '2'],
      [undefined, '4'],
      [undefined, '5'],
    ])
    expect(sent(server)).toEqual(['get room', 'get room'])
  })

  it('emits the present members and every change as events', async () => {
    const { client, server } = createTestClient()
    server.presence.enter('room', undefined, { id: '1', userId: 'ada' })
    const room = presence('room', { client })
    const told = follow(room)
    await settle()
    expect(told).toEqual(['enter 1', 'user-enter ada', 'sync 1'])
    told.length = 0
    server.presence.enter('room', undefined, { id: '2', userId: 'ada' })
    server.presence.enter('room', undefined, { id: '2', userId: 'ada', data: 1 })
    server.presence.leave('room', '1')
    await settle()
    expect(told).toEqual(['enter 2', 'update 2 1', 'leave 1'])
    told.length = 0
    server.presence.leave('room', '2')
    await settle()
    expect(told).toEqual(['leave 2 1', 'user-leave ada'])
    expect(await room.get()).toEqual([])
    expect(sent(server)).toEqual(['watch room'])
  })

  it('emits the present members to a later handle, and nothing twice to the others', async () => {
    const { client, server } = createTestClient()
    const first = follow(presence('room', { client }))
    await settle()
    server.presence.enter('room', undefined, { id: '1' })
    await settle()
    const second = follow(presence('room', { client }))
    await settle()
    expect(second).toEqual(['enter 1', 'user-enter ', 'sync 1'])
    expect(first).toEqual(['sync ', 'enter 1', 'user-enter '])
    expect(sent(server)).toEqual(['watch room'])
  })

  it('ends with its handles: the last one leaves and unwatches', async () => {
    const { client, server } = createTestClient()
    const [one, two] = [presence('room', { client }), presence('room', { client })]
    const told = follow(one)
    follow(two)
    await one.enter(1)
    await two.enter(2)
    one[Symbol.dispose]()
    await settle()
    expect(server.presence.members('room')).toMatchObject([{ data: 2 }])
    const { length } = told
    two[Symbol.dispose]()
    server.presence.enter('room', undefined, { id: '1' })
    await settle()
    expect(server.presence.members('room')).toEqual([{ id: '1' }])
    expect(sent(server).slice(-2)).toEqual(['leave room', 'unwatch room'])
    expect(told).toHaveLength(length)
  })

  it('refuses an invalid key, and data without JSON', async () => {
    const { client } = createTestClient()
    expect(() => presence('a.*', { client })).toThrow('key is not valid')
    await expect(presence('a', { client }).enter(() => undefined)).rejects.toMatchObject({ code: 'E_PAYLOAD_INVALID' })
  })

  it('ends with the client', async () => {
    const { client, server } = createTestClient()
    server.isUp = false
    const room = presence('room', { client })
    const [entered, asked] = [room.enter(), room.get()]
    await client.close()
    await expect(entered).rejects.toMatchObject({ code: 'E_CLOSED' })
    await expect(asked).rejects.toMatchObject({ code: 'E_CLOSED' })
    expect(() => presence('other', { client })).not.toThrow()
  })

  it('leaves at once when the client is closed', async () => {
    const { client, server } = createTestClient()
    await presence('room', { client }).enter()
    await client.close()
    await settle()
    expect(server.presence.members('room')).toEqual([])
  })
})

describe('presence over reconnects', () => {
  it('enters and watches again, as the same member, and emits the difference', async () => {
    const { client, server } = createTestClient()
    server.presence.enter('room', undefined, { id: '1' })
    server.presence.enter('room', undefined, { id: '2' })
    const room = presence('room', { client })
    await room.enter('me')
    const told = follow(room)
    await settle()
    const { id } = room
    told.length = 0
    server.drop()
    server.presence.leave('room', '1')
    server.presence.enter('room', undefined, { id: '2', data: 'new' })
    server.presence.enter('room', undefined, { id: '3' })
    await settle()
    expect(told).toEqual([])
    await reconnect()
    expect(told).toEqual(['leave 1', 'update 2 "new"', 'enter 3', 'user-leave ', 'user-enter ', `sync 2,${id},3`])
    expect(room.id).toBe(id)
    server.presence.lapse()
    expect(server.presence.members('room').filter((member) => member.id === id)).toEqual([{ id, data: 'me' }])
  })

  it('waits for a connection, and then sends the last data', async () => {
    const { client, server } = createTestClient()
    server.isUp = false
    const room = presence('room', { client })
    const entered = [room.enter(1), room.enter(2)]
    const members = room.get()
    await reconnect()
    server.isUp = true
    await vi.advanceTimersByTimeAsync(5_000)
    await Promise.all(entered)
    expect(await members).toEqual([{ id: room.id, data: 2 }])
    expect(sent(server)).toEqual(['enter room', 'get room'])
  })

  it('does not enter again if it left meanwhile', async () => {
    const { client, server } = createTestClient({ random: () => 0.5 })
    const room = presence('room', { client })
    await room.enter()
    server.drop()
    await settle()
    await room.leave()
    await reconnect()
    expect(sent(server)).toEqual(['enter room'])
    const never = room.enter()
    server.ignore('presence')
    await room.leave()
    await expect(never).rejects.toMatchObject({ code: 'E_ABORTED' })
  })

  it('retries when an answer is lost', async () => {
    const { client, server } = createTestClient({ ackTimeoutMs: 1_000 })
    const room = presence('room', { client })
    await client.connect()
    server.loseAnswer('presence')
    server.loseAnswer('presence')
    const told = follow(room)
    const entered = room.enter()
    await vi.advanceTimersByTimeAsync(5_000)
    await entered
    expect(told.at(-1)).toBe(`sync ${room.id}`)
  })

  it('times out without an answer', async () => {
    const { client, server } = createTestClient({ ackTimeoutMs: 1_000 })
    server.isUp = false
    const members = presence('room', { client }).get()
    members.catch(() => undefined)
    await vi.advanceTimersByTimeAsync(1_001)
    await expect(members).rejects.toMatchObject({ code: 'E_TIMEOUT' })
  })
})

describe('presence that is refused', () => {
  it('rejects the caller, and is not retried', async () => {
    const { client, server } = createTestClient()
    const errors: unknown[] = []
    client.on('error', ({ error, key }) => errors.push([key, (error as { code: string }).code]))
    server.refuse('presence', 'E_PRESENCE_LIMIT')
    const room = presence('room', { client })
    await expect(room.enter()).rejects.toMatchObject({ code: 'E_PRESENCE_LIMIT' })
    server.drop()
    await settle()
    await reconnect()
    expect(sent(server)).toEqual(['enter room'])
    expect(errors).toEqual([['room', 'E_PRESENCE_LIMIT']])
  })

  it('is retried when it was refused after a reconnect, and may succeed later', async () => {
    const { client, server } = createTestClient()
    const errors: unknown[] = []
    client.on('error', ({ error }) => errors.push((error as { code: string }).code))
    const room = presence('room', { client })
    await room.enter()
    server.refuse('presence', 'E_PRESENCE_LIMIT')
    server.drop()
    server.presence.lapse()
    await vi.advanceTimersByTimeAsync(5_000)
    expect(server.presence.members('room')).toHaveLength(1)
    expect(errors).toEqual(['E_PRESENCE_LIMIT'])
  })

  it('ends when the grant does', async () => {
    const server = createTestServer()
    const { client } = createTestClient({ server })
    client.on('error', () => undefined)
    const room = presence('room', { client })
    const told = follow(room)
    await room.enter()
    await settle()
    told.length = 0
    server.revoke('room')
    await settle()
    expect(told).toContain('error E_FORBIDDEN')
    await expect(room.get()).rejects.toMatchObject({ code: 'E_FORBIDDEN' })
    expect(server.presence.members('room')).toEqual([])

    const later = follow(presence('room', { client }))
    await settle()
    expect(later).toEqual(['error E_FORBIDDEN'])
  })

  // Symptom: others saw the member, which took itself for absent and was gone after its next reconnect.
  it('keeps its own entry when only the watch is refused', async () => {
    const { client, server } = createTestClient()
    client.on('error', () => undefined)
    const room = presence('room', { client })
    await room.enter('me')
    // Its token may enter, and not listen.
    server.refuse('presence', 'E_FORBIDDEN')
    const refused = new Promise((resolve) => room.on('error', resolve))
    expect(await refused).toMatchObject({ code: 'E_FORBIDDEN' })
    server.drop()
    server.presence.lapse()
    await reconnect()
    expect(server.presence.members('room')).toEqual([{ id: room.id, data: 'me' }])
    await room.leave()
    expect(server.presence.members('room')).toEqual([])
  })

  // Symptom: a handle that came after the end heard nothing. Cause: the client asked only for the first handle of a key.
  it('is asked for again by a new handle', async () => {
    const { client, server } = createTestClient()
    client.on('error', () => undefined)
    server.refuse('presence', 'E_FORBIDDEN')
    const first = follow(presence('room', { client }))
    await settle()
    server.presence.enter('room', undefined, { id: '1' })
    const second = follow(presence('room', { client }))
    await settle()
    expect(second).toEqual(['enter 1', 'user-enter ', 'sync 1'])
    expect(first).toEqual(['error E_FORBIDDEN', ...second])
    expect(sent(server)).toEqual(['watch room', 'watch room'])
  })
})

// Symptom: a page that went from room to room kept every room, and asked about all of them at every reconnect.
it('forgets a room that nobody uses', async () => {
  const { client } = createTestClient()
  const rooms = client.add((core) => new Rooms(core))
  await client.connect()
  const used = rooms.at('used')
  used.watch({ isTold: false, tell: () => undefined })
  const unused = rooms.at('unused')
  rooms.at('other')
  expect([rooms.at('used') === used, rooms.at('unused') === unused]).toEqual([true, false])
  await client.close()
})
