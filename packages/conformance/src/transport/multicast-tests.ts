import { describe, expect, it } from 'vitest'
import type { ConnectionId, GroupId } from 'webmq-server/ports'
import { eventually } from './eventually.js'
import { group, Harness, type TestedTransport } from './harness.js'

/** A fixed sequence of numbers from 0 to 1 (Park-Miller), so that failures are reproducible. */
function randomSequence(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
}

/** Groups and multicasts. */
export function multicastTests(create: TestedTransport): void {
  describe('multicast', () => {
    it('reaches every member of any of the groups once, and nobody else', async () => {
      const harness = await Harness.start(create)
      const { transport } = harness
      const clients = await harness.connectMany(4)
      const [onlyFirst, both, all, none] = clients.map(({ connection }) => connection)
      const join = (connection: ConnectionId | undefined, ...groups: number[]) => {
        for (const id of groups) transport.join(connection as ConnectionId, group(id))
      }
      join(onlyFirst, 1)
      join(both, 1, 2)
      join(all, 1, 2, 3, 4)
      transport.multicast([group(1), group(2), group(3)], 'x', false)
      transport.multicast([group(4), group(5)], Buffer.from('y'), true)
      for (const client of clients) await harness.settle(client)
      expect(clients.map(({ client }) => client.messages)).toEqual([['x'], ['x'], ['x', Buffer.from('y')], []])
      expect(none).toBeDefined()
    })

    it('reaches a member once when a group is named twice', async () => {
      const harness = await Harness.start(create)
      const member = await harness.connect()
      harness.transport.join(member.connection, group(1))
      harness.transport.multicast([group(1), group(1)], 'x', false)
      await harness.settle(member)
      expect(member.client.messages).toEqual(['x'])
    })

    it('leaves out the exception', async () => {
      const harness = await Harness.start(create)
      const members = await harness.connectMany(3)
      for (const { connection } of members) {
        harness.transport.join(connection, group(1))
        harness.transport.join(connection, group(2))
      }
      harness.transport.multicast([group(1), group(2)], 'x', false, members[1]?.connection)
      for (const member of members) await harness.settle(member)
      expect(members.map(({ client }) => client.messages)).toEqual([['x'], [], ['x']])
    })

    it('takes joining twice as joining, and leaving once as leaving', async () => {
      const harness = await Harness.start(create)
      const { transport } = harness
      const member = await harness.connect()
      transport.join(member.connection, group(1))
      transport.join(member.connection, group(1))
      transport.multicast([group(1)], 'in', false)
      transport.leave(member.connection, group(1))
      transport.leave(member.connection, group(1))
      transport.leave(member.connection, group(2))
      transport.multicast([group(1), group(2)], 'out', false)
      await harness.settle(member)
      expect(member.client.messages).toEqual(['in'])
    })

    it('takes effect in the order of the calls of one turn', async () => {
      const harness = await Harness.start(create)
      const { transport } = harness
      const member = await harness.connect()
      transport.multicast([group(7)], 'before', false)
      transport.join(member.connection, group(7))
      transport.multicast([group(7)], 'inside', false)
      transport.leave(member.connection, group(7))
      transport.multicast([group(7)], 'between', false)
      transport.join(member.connection, group(7))
      transport.send(member.connection, 'direct', false)
      transport.multicast([group(7)], 'again', false)
      await harness.settle(member)
      expect(member.client.messages).toEqual(['inside', 'direct', 'again'])
    })

    it('joins from inside `open`, before anything else can happen', async () => {
      const harness = await Harness.start(create, {}, (transport) => ({
        open: (connection) => {
          transport.join(connection, group(1))
          transport.multicast([group(1)], 'welcome', false)
        },
      }))
      const { client } = await harness.connect()
      await eventually(() => expect(client.messages).toEqual(['welcome']))
    })

    it('knows the smallest and the largest group', async () => {
      const harness = await Harness.start(create)
      const member = await harness.connect()
      const [first, last] = [group(0), group(2 ** 32 - 1)]
      harness.transport.join(member.connection, first)
      harness.transport.join(member.connection, last)
      harness.transport.multicast([first], 'first', false)
      harness.transport.multicast([last], 'last', false)
      await harness.settle(member)
      expect(member.client.messages).toEqual(['first', 'last'])
    })

    it('sends to nobody without groups, members or connections', async () => {
      const harness = await Harness.start(create)
      const member = await harness.connect()
      harness.transport.multicast([], 'x', false)
      harness.transport.multicast([group(1)], 'x', false)
      harness.transport.join(4_711 as ConnectionId, group(1))
      harness.transport.leave(4_711 as ConnectionId, group(1))
      harness.transport.multicast([group(1)], 'x', false)
      await harness.settle(member)
      expect(member.client.messages).toEqual([])
    })

    it('forgets the groups of a connection that has closed', async () => {
      const harness = await Harness.start(create)
      const { transport } = harness
      const [leaver, stayer] = await harness.connectMany(2)
      if (leaver === undefined || stayer === undefined) throw new Error('two clients were asked for')
      for (const { connection } of [leaver, stayer]) transport.join(connection, group(1))
      leaver.client.destroy()
      await eventually(() => expect(harness.sink.closureOf(leaver.connection)).toBeDefined())
      transport.join(leaver.connection, group(1))
      const before = transport.stats().deliveredCount
      transport.multicast([group(1)], 'x', false)
      await harness.settle(stayer)
      expect(stayer.client.messages).toEqual(['x'])
      // One delivery of the multicast, one of the message of `settle`.
      await eventually(() => expect(transport.stats().deliveredCount).toBe(before + 2))
    })

    it('lets a message write itself, small and large, to many and to one', async () => {
      const harness = await Harness.start(create)
      const { transport } = harness
      const member = await harness.connect()
      transport.join(member.connection, group(1))
      const source = (byteLength: number) => ({
        byteLength,
        writeTo: (target: Uint8Array, start: number) => void target.fill(0x61, start, start + byteLength),
      })
      transport.multicast([group(1)], source(3), false)
      transport.send(member.connection, source(4), true)
      transport.multicast([group(1)], source(100_000), false)
      transport.multicast([group(1)], source(0), true)
      await harness.settle(member)
      expect(member.client.messages).toEqual(['aaa', Buffer.from('aaaa'), 'a'.repeat(100_000), Buffer.alloc(0)])
    })

    it('has copied what it sends when the call returns', async () => {
      const harness = await Harness.start(create)
      const members = await harness.connectMany(3)
      for (const { connection } of members) harness.transport.join(connection, group(1))
      const data = new Uint8Array(30_000).fill(1)
      harness.transport.multicast([group(1)], data, true)
      data.fill(2)
      for (const member of members) await harness.settle(member)
      const expected = Buffer.alloc(30_000, 1)
      // `toEqual` takes a second for that many bytes.
      const areWhole = members.map(({ client: { messages } }) =>
        messages.map((data) => expected.equals(data as Buffer)),
      )
      expect(areWhole).toEqual([[true], [true], [true]])
    })

    it('gives every connection exactly what a model says, in the order of the calls', async () => {
      const harness = await Harness.start(create)
      const { transport } = harness
      const members = await harness.connectMany(8)
      const random = randomSequence(20_261)
      const pick = (count: number) => Math.floor(random() * count)
      const joined = members.map(() => new Set<GroupId>())
      const expected = members.map((): string[] => [])
      for (let step = 0; step < 2_000; step++) {
        const index = pick(members.length)
        const connection = members[index]?.connection as ConnectionId
        const one = group(pick(6))
        const text = `${step}`
        const action = pick(10)
        if (action < 2) {
          transport.join(connection, one)
          joined[index]?.add(one)
        } else if (action < 3) {
          transport.leave(connection, one)
          joined[index]?.delete(one)
        } else if (action < 5) {
          transport.send(connection, text, false)
          expected[index]?.push(text)
        } else {
          const groups = Array.from({ length: pick(4) }, () => group(pick(6)))
          const except = action === 9 ? connection : undefined
          transport.multicast(groups, text, false, except)
          for (const [other, groupsOfOther] of joined.entries()) {
            const isMember = groups.some((id) => groupsOfOther.has(id))
            if (isMember && members[other]?.connection !== except) expected[other]?.push(text)
          }
        }
        // Most calls share a turn with others; some do not.
        if (action === 0) await new Promise((resolve) => setImmediate(resolve))
      }
      for (const member of members) await harness.settle(member)
      expect(members.map(({ client }) => client.messages)).toEqual(expected)
    })
  })
}
