import { describe, expect, it } from 'vitest'
import type { ConnectionId } from '../../kernel/ports/transport.js'
import { ConnectionGroups } from './connection.js'

const NAME = { kind: 'listen', group: 'g', pattern: 'a' } as const

/** Groups whose joins are decided by hand, and how many memberships were told of. */
function createGroups() {
  const joins: { readonly resolve: () => void; readonly reject: (error: Error) => void }[] = []
  const told = { count: 0 }
  const groups = new ConnectionGroups(1 as ConnectionId, 'user ann', {
    limits: { maxOutboxBytes: 1_048_576 },
    transport: { send: () => undefined },
    drains: { await: () => undefined },
    groups: {
      join: () => new Promise<void>((resolve, reject) => joins.push({ resolve, reject })),
      leave: () => undefined,
      requests: { countOf: () => 0, left: () => undefined } as never,
    },
    listensChanged: (_, by) => {
      told.count += by
    },
  })
  return { groups, joins, told }
}

describe('ConnectionGroups', () => {
  it('tells of as many memberships as it has, also while it joins', async () => {
    // Symptom: the sum of all listens fell below their number. Cause: a connection that closed while it joined a group was
    // counted down by a membership that had not been counted up.
    const { groups, joins, told } = createGroups()
    const joined = groups.join(NAME)
    expect([groups.size, told.count]).toEqual([1, 1])
    joins[0]?.resolve()
    await joined
    expect([groups.size, told.count]).toEqual([1, 1])
    groups.leave(NAME)
    expect([groups.size, told.count]).toEqual([0, 0])
  })

  it('takes back a membership that is refused, once', async () => {
    const { groups, joins, told } = createGroups()
    const refused = expect(Promise.resolve(groups.join(NAME))).rejects.toThrow('no')
    joins[0]?.reject(new Error('no'))
    await refused
    expect([groups.size, told.count]).toEqual([0, 0])
    const left = expect(Promise.resolve(groups.join(NAME))).rejects.toThrow('no')
    groups.leave(NAME)
    joins[1]?.reject(new Error('no'))
    await left
    expect([groups.size, told.count]).toEqual([0, 0])
  })
})
