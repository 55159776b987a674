import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { BrokerHub } from '../../../test/broker-hub.js'
import { clientOf, LINGER_MS, PresenceNode, type PresenceNodeOptions, TTL_MS } from '../../../test/presence-nodes.js'
import { encodePart } from '../nodes/node-message.js'
import { memberIdOf } from './member.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** Longer than batches and messages take. */
const spread = () => vi.advanceTimersByTimeAsync(200)
/** Longer than it takes until the others have answered. */
const settle = () => vi.advanceTimersByTimeAsync(1_000)

function nodes<const N extends readonly string[]>(names: N, options?: PresenceNodeOptions) {
  const hub = new BrokerHub()
  return names.map((name) => new PresenceNode(name, hub, options)) as { [I in keyof N]: PresenceNode }
}

/** Nodes that take part already. */
async function joined<const N extends readonly string[]>(names: N, options?: PresenceNodeOptions) {
  const all = nodes(names, options)
  for (const { presence } of all as readonly PresenceNode[]) presence.begin()
  await settle()
  return all
}

const member = (key: string, name: string, userId?: string) => memberIdOf(key, userId, name)

describe('members', () => {
  it('are seen on all nodes: who enters, changes what it says, and leaves', async () => {
    const [a, b, c] = await joined(['a', 'b', 'c'])
    const watcher = await b.watch('room')
    const ada = a.connect()
    const { id } = ada.enter('room', clientOf('ada'), 'm', '{"name":"Ada"}')
    await spread()
    for (const node of [a, b, c]) expect(node.membersOf('room')).toEqual([{ id, userId: 'ada', data: { name: 'Ada' } }])
    ada.enter('room', clientOf('ada'), 'm', '{"name":"Ada L."}')
    await spread()
    for (const node of [a, b, c]) expect(node.dataOf('room')).toEqual([{ name: 'Ada L.' }])
    ada.leave('room')
    await spread()
    for (const node of [a, b, c]) expect(node.membersOf('room')).toEqual([])
    expect(watcher.told).toEqual([`+${id}`, `~${id}`, `-${id}`])
  })

  it('are asked for when a node begins to take part', async () => {
    const [a, b] = nodes(['a', 'b'])
    for (let index = 0; index < 300; index++)
      a.connect().enter('room', clientOf(undefined), `m${index}`, `"${'x'.repeat(1_000)}"`)
    await settle()
    expect(b.broker.patterns).not.toContain('$webmq.nodes.presence')
    const complete = b.presence.whenComplete()
    await settle()
    await complete
    expect(b.membersOf('room')).toEqual(a.membersOf('room'))
    expect(b.membersOf('room')).toHaveLength(300)
    expect(b.presence.whenComplete()).toBeUndefined()
  })

  it('cost nothing on a node where nobody has asked for any', async () => {
    const [a, b] = nodes(['a', 'b'])
    a.connect().enter('room', clientOf(undefined), 'm', undefined)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(b.broker.patterns).not.toContain('$webmq.nodes.presence')
    expect(b.presence.stats().memberCount).toBe(0)
  })

  it('are told in one message when many come at once, and not at all when they come and go', async () => {
    const [a, b] = await joined(['a', 'b'])
    const watcher = await b.watch('room')
    const { publishedCount } = a.broker
    for (let index = 0; index < 50; index++) a.connect().enter('room', clientOf(undefined), `m${index}`, undefined)
    const shy = a.connect()
    shy.enter('room', clientOf(undefined), 'shy', undefined)
    shy.leave('room')
    await spread()
    expect(a.broker.publishedCount - publishedCount).toBe(1)
    expect(watcher.told).toHaveLength(50)
  })

  it('have one place per connection and key: another name leaves the first', async () => {
    const [a, b] = await joined(['a', 'b'])
    const connection = a.connect()
    connection.enter('room', clientOf(undefined), 'one', '1')
    connection.enter('room', clientOf(undefined), 'two', '2')
    await spread()
    expect(b.dataOf('room')).toEqual([2])
  })

  it('say what they said last, also on a node that has written less than the one before', async () => {
    const [a, b, c] = await joined(['a', 'b', 'c'])
    const first = a.connect()
    for (let data = 0; data < 10; data++) first.enter('room', clientOf('ada'), 'm', String(data))
    await spread()
    b.connect().enter('room', clientOf('ada'), 'm', '"later"')
    await spread()
    for (const node of [a, b, c]) expect(node.dataOf('room')).toEqual(['later'])
  })

  it('are sent as they are by then when they change while everything is on its way', async () => {
    const hub = new BrokerHub(() => 100)
    const [a, b] = ['a', 'b'].map((name) => new PresenceNode(name, hub, { maxPayloadBytes: 400 })) as [
      PresenceNode,
      PresenceNode,
    ]
    const [one, two, three] = ['1', '2', '3'].map((name) => {
      const connection = a.connect()
      connection.enter('room', clientOf(undefined), name, `"${name}"`)
      return connection
    })
    await settle()
    const complete = b.presence.whenComplete()
    // The first part is on its way, the next one waits until the broker has it.
    await vi.waitUntil(() => b.presence.stats().memberCount > 0, { interval: 1, timeout: 5_000 })
    one?.enter('room', clientOf(undefined), '1', '"1 changed"')
    two?.enter('room', clientOf(undefined), '2', '"2 changed"')
    three?.leave('room')
    await settle()
    await complete
    expect(b.dataOf('room')).toEqual(['1 changed', '2 changed'])
    expect(b.membersOf('room')).toEqual(a.membersOf('room'))
  })

  it('cannot be taken over by who has seen their ids, nor by another user who knows the name', async () => {
    const [a, b] = await joined(['a', 'b'])
    const { id } = a.connect().enter('room', clientOf('ada'), 'secret', '1')
    await spread()
    b.connect().enter('room', clientOf('bob'), 'secret', '2')
    b.connect().enter('room', clientOf(undefined), id, '3')
    await spread()
    expect(a.dataOf('room')).toEqual([1, 2, 3])
    expect(a.membersOf('room').find((other) => other.id === id)).toEqual({ id, userId: 'ada', data: 1 })
  })
})

describe('a connection that is lost', () => {
  it('keeps its members for a while, then they leave', async () => {
    const [a, b] = await joined(['a', 'b'])
    const watcher = await b.watch('room')
    const connection = a.connect()
    const { id } = connection.enter('room', clientOf(undefined), 'm', undefined)
    connection.close(false)
    await vi.advanceTimersByTimeAsync(LINGER_MS - 100)
    expect(watcher.told).toEqual([`+${id}`])
    await spread()
    expect(watcher.told).toEqual([`+${id}`, `-${id}`])
  })

  it('is not seen to leave when it comes back, to another node or to the same', async () => {
    const [a, b, c] = await joined(['a', 'b', 'c'])
    const watcher = await c.watch('room')
    const first = a.connect()
    const { id } = first.enter('room', clientOf('ada'), 'm', '1')
    await spread()
    first.close(false)
    const second = b.connect()
    second.enter('room', clientOf('ada'), 'm', '1')
    await vi.advanceTimersByTimeAsync(LINGER_MS + 1_000)
    expect(a.presence.stats().ownMemberCount).toBe(0)
    second.close(false)
    const third = b.connect()
    third.enter('room', clientOf('ada'), 'm', '2')
    await vi.advanceTimersByTimeAsync(LINGER_MS + 1_000)
    expect(watcher.told).toEqual([`+${id}`, `~${id}`])
    third.leave('room')
    await spread()
    for (const node of [a, b, c]) expect(node.membersOf('room')).toEqual([])
  })

  it('takes its members with it at once when it has said so', async () => {
    const [a, b] = await joined(['a', 'b'])
    const connection = a.connect()
    connection.enter('room', clientOf(undefined), 'm', undefined)
    await spread()
    connection.close(true)
    await spread()
    expect(b.membersOf('room')).toEqual([])
  })

  it('is ended everywhere by a leave on the connection that came after it, noticed as lost or not', async () => {
    const [a, b, c] = await joined(['a', 'b', 'c'])
    const dead = a.connect()
    dead.enter('room', clientOf('ada'), 'm', '1')
    await spread()
    const alive = b.connect()
    alive.enter('room', clientOf('ada'), 'm', '2')
    await spread()
    expect(c.dataOf('room')).toEqual([2])
    alive.leave('room')
    await spread()
    for (const node of [a, b, c]) expect(node.membersOf('room')).toEqual([])
    dead.close(false)
    await spread()
    expect(c.membersOf('room')).toEqual([])
  })
})

describe('nodes', () => {
  it('that crash take their members with them, within the time that is said', async () => {
    const [a, b, c] = await joined(['a', 'b', 'c'])
    const watcher = await c.watch('room')
    a.connect().enter('room', clientOf(undefined), 'of a', undefined)
    b.connect().enter('room', clientOf(undefined), 'of b', '"of b"')
    await spread()
    await vi.advanceTimersByTimeAsync(4 * TTL_MS)
    expect(c.membersOf('room')).toHaveLength(2)
    a.broker.crash()
    await vi.advanceTimersByTimeAsync(TTL_MS)
    for (const node of [b, c]) expect(node.dataOf('room')).toEqual(['of b'])
    expect(watcher.told.at(-1)).toBe(`-${member('room', 'of a')}`)
    expect(c.presence.stats().peerCount).toBe(1)
  })

  it('keep each other alive with every time to live', async () => {
    // Whose shares are no whole numbers.
    const [a, b] = await joined(['a', 'b'], { ttlMs: 2_000 })
    a.connect().enter('room', clientOf(undefined), 'm', undefined)
    await vi.advanceTimersByTimeAsync(20_000)
    expect(b.presence.stats()).toMatchObject({ memberCount: 1, peerCount: 1, droppedCount: 0 })
  })

  it('that stop leave theirs for as long as a lost connection does', async () => {
    const [a, b] = await joined(['a', 'b'])
    const connection = a.connect()
    connection.enter('room', clientOf(undefined), 'm', undefined)
    await spread()
    connection.close(false)
    a.stop()
    await a.broker.stop()
    await vi.advanceTimersByTimeAsync(LINGER_MS - 200)
    expect(b.membersOf('room')).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(500)
    expect(b.membersOf('room')).toEqual([])
  })

  it('that lose their broker forget nobody, and agree when it is back, whatever has happened meanwhile', async () => {
    const [a, b] = await joined(['a', 'b'])
    const stays = a.connect()
    stays.enter('room', clientOf(undefined), 'stays', '"stays"')
    const goes = a.connect()
    goes.enter('room', clientOf(undefined), 'goes', '"goes"')
    await spread()
    for (const { broker } of [a, b]) broker.cut()
    goes.leave('room')
    a.connect().enter('room', clientOf(undefined), 'comes', '"comes"')
    b.connect().enter('room', clientOf(undefined), 'other', '"other"')
    await vi.advanceTimersByTimeAsync(4 * TTL_MS)
    expect(b.dataOf('room')).toEqual(['goes', 'other', 'stays'])
    expect(a.dataOf('room')).toEqual(['comes', 'stays'])
    for (const { broker } of [a, b]) broker.mend()
    await spread()
    for (const node of [a, b]) expect(node.dataOf('room')).toEqual(['comes', 'other', 'stays'])
  })

  it('that are cut off while the others are not are missing there, and come back with everything', async () => {
    const [a, b] = await joined(['a', 'b'])
    const watcher = await b.watch('room')
    const { id } = a.connect().enter('room', clientOf(undefined), 'm', undefined)
    await spread()
    a.broker.cut()
    await vi.advanceTimersByTimeAsync(TTL_MS)
    expect(b.membersOf('room')).toEqual([])
    a.broker.mend()
    await spread()
    expect(b.membersOf('room')).toEqual(a.membersOf('room'))
    expect(watcher.told).toEqual([`+${id}`, `-${id}`, `+${id}`])
  })

  it('that began while their broker was away take part when it is back', async () => {
    const [a, b] = nodes(['a', 'b'])
    a.broker.cut()
    a.connect().enter('room', clientOf(undefined), 'm', '1')
    const complete = a.presence.whenComplete()
    await vi.advanceTimersByTimeAsync(3_000)
    await complete
    b.connect().enter('room', clientOf(undefined), 'n', '2')
    a.broker.mend()
    await vi.advanceTimersByTimeAsync(3_000)
    for (const node of [a, b]) expect(node.dataOf('room')).toEqual([1, 2])
  })

  it('that stood still take nobody for dead before they have read what came meanwhile', async () => {
    const [a, b] = await joined(['a', 'b'])
    a.connect().enter('room', clientOf(undefined), 'm', undefined)
    await spread()
    const watcher = await b.watch('room')
    vi.setSystemTime(Date.now() + 10 * TTL_MS)
    await vi.advanceTimersByTimeAsync(TTL_MS)
    expect(watcher.told).toEqual([])
    expect(b.membersOf('room')).toHaveLength(1)
  })

  it('count what they do not understand, and go on', async () => {
    const [a] = await joined(['a'])
    const receive = (payload: Buffer) => a.nodes.channel.receive({ key: '$webmq.nodes.presence', payload })
    for (const text of ['', '{}', '[]', 'null']) receive(Buffer.from(text))
    const texts = ['presence changes', 'presence changes {', 'presence changes {"version":1}\n', 'presence lease {}\n']
    for (const text of texts) receive(encodePart('x', Buffer.from(text), false))
    receive(encodePart('x', Buffer.from('presence changes {"version":1,"entries":[["a b",1,{"id":"m"}]]}\n'), false))
    expect(a.nodes.stats().droppedCount).toBe(9)
    expect(a.presence.stats().memberCount).toBe(0)
  })
})

describe('limits', () => {
  it('hold for what a member says', async () => {
    const [a] = await joined(['a'])
    const connection = a.connect()
    expect(() => connection.enter('room', clientOf(undefined), 'm', `"${'x'.repeat(4_095)}"`)).toThrow('4097 bytes')
    expect(() => connection.enter('room', clientOf(undefined), 'm', '{')).toThrow('payload cannot be encoded')
    connection.enter('room', clientOf(undefined), 'm', `"${'x'.repeat(4_094)}"`)
    expect(a.membersOf('room')).toHaveLength(1)
  })

  it('hold for the members of a key, of all keys, and their bytes, over all nodes', async () => {
    const [a, b] = await joined(['a', 'b'], {
      limits: { presenceMaxMembersPerKey: 2, presenceMaxMembers: 4, maxOutboxBytes: 800 },
    })
    const connection = a.connect()
    connection.enter('room', clientOf(undefined), '1', '1')
    b.connect().enter('room', clientOf(undefined), '2', undefined)
    await spread()
    expect(() => b.connect().enter('room', clientOf(undefined), '3', undefined)).toThrow('2 members of a key')
    connection.enter('room', clientOf(undefined), '1', '2')
    expect(() => connection.enter('room', clientOf(undefined), '1', `"${'x'.repeat(400)}"`)).toThrow('400 bytes')
    for (const key of ['x', 'y']) connection.enter(key, clientOf(undefined), '1', undefined)
    expect(() => connection.enter('z', clientOf(undefined), '1', undefined)).toThrow('4 members of all keys')
    expect(a.membersOf('room')).toHaveLength(2)
  })

  it('hold for the bytes of all members, and are given back', async () => {
    const [a, b, c] = await joined(['a', 'b', 'c'], { limits: { presenceMaxBytes: 200 } })
    const connection = a.connect()
    const data = `"${'x'.repeat(100)}"`
    connection.enter('x', clientOf(undefined), 'm', data)
    expect(() => connection.enter('y', clientOf(undefined), 'm', data)).toThrow('200 bytes of the members of all keys')
    connection.enter('x', clientOf(undefined), 'm', data)
    for (const node of [b, c]) node.connect().enter(node.broker.name, clientOf(undefined), 'm', data)
    await spread()
    expect(a.presence.stats()).toMatchObject({ memberCount: 2, droppedCount: 1 })
    expect(() => connection.enter('x', clientOf(undefined), 'm', `"${'x'.repeat(200)}"`)).toThrow('200 bytes')
    connection.enter('x', clientOf(undefined), 'm', '1')
    await spread()
    connection.leave('x')
    expect(a.presence.stats().memberCount).toBe(1)
  })

  it('hold for the keys of a connection', async () => {
    const [a] = await joined(['a'], { limits: { presenceMaxKeysPerConnection: 1 } })
    const connection = a.connect()
    connection.enter('x', clientOf(undefined), 'm', undefined)
    connection.watch('x', () => undefined)
    expect(() => connection.enter('y', clientOf(undefined), 'm', undefined)).toThrow('1 keys of a connection')
    expect(() => connection.watch('y', () => undefined)).toThrow('1 watched keys')
    connection.unwatch('x')
    connection.watch('y', () => undefined)
    expect(a.presence.stats().watchedKeyCount).toBe(1)
  })

  it('bound what a node keeps of what others have taken at the same time', async () => {
    const [a, b, c] = await joined(['a', 'b', 'c'], { limits: { presenceMaxMembers: 2 } })
    let names = 0
    for (const node of [a, b, c]) {
      for (const name of ['1', '2'])
        node.connect().enter('room', clientOf(node.broker.name + name), `of-${names++}`, undefined)
    }
    await spread()
    expect(a.presence.stats()).toMatchObject({ memberCount: 4, droppedCount: 2 })
  })

  it('keep messages between nodes small', async () => {
    const [a, b] = nodes(['a', 'b'], { maxPayloadBytes: 8_192 })
    const sizes: number[] = []
    const publish = a.broker.publish.bind(a.broker)
    vi.spyOn(a.broker, 'publish').mockImplementation((message) => {
      sizes.push(message.payload.length)
      return publish(message)
    })
    b.presence.begin()
    await settle()
    for (let index = 0; index < 100; index++)
      a.connect().enter('room', clientOf(undefined), `m${index}`, `"${'é'.repeat(500)}"`)
    await settle()
    expect(b.membersOf('room')).toHaveLength(100)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(8_192)
    expect(sizes.length).toBeGreaterThan(10)
  })
})

// Symptom: one anonymous client entered 128 keys, was cut, and came back, until everybody was refused. Cause: members that linger
// counted for users alone.
describe('members of anonymous clients', () => {
  const limits = { presenceMaxMembersPerUser: 10, presenceMaxMembers: 100 }
  const enterAll = (node: PresenceNode, address: string, count: number) => {
    let enteredCount = 0
    for (let index = 0; index < count; index++) {
      const connection = node.connect()
      try {
        connection.enter(`${address}.${index}`, clientOf(undefined, address), 'm', undefined)
        enteredCount++
      } catch (error) {
        expect(error).toMatchObject({ code: 'E_PRESENCE_LIMIT' })
      }
      connection.close(false)
    }
    return enteredCount
  }

  it('count by address, a /64 of IPv6, also when their connections are lost', () => {
    const [node] = nodes(['a'], { limits })
    expect(enterAll(node, '203.0.113.9', 30)).toBe(10)
    expect(enterAll(node, '2001:db8::1', 8)).toBe(8)
    expect(enterAll(node, '2001:db8::2', 8)).toBe(2)
    expect(enterAll(node, '203.0.113.10', 1)).toBe(1)
  })

  it('of a loopback or private address, behind which is usually a proxy, have a quarter of all', () => {
    const [node] = nodes(['a'], { limits })
    expect(enterAll(node, '127.0.0.1', 50)).toBe(25)
    expect(enterAll(node, '10.0.0.1', 50)).toBe(25)
    expect(enterAll(node, '203.0.113.9', 1)).toBe(1)
  })

  it('have their room back when they are over', async () => {
    const [node] = nodes(['a'], { limits })
    expect(enterAll(node, '203.0.113.9', 30)).toBe(10)
    await vi.advanceTimersByTimeAsync(LINGER_MS + 1_000)
    expect(enterAll(node, '203.0.113.9', 30)).toBe(10)
  })
})
