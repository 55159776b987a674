import { expect, it } from 'vitest'
import type { Member } from './member.js'
import { Members } from './members.js'

const KEY = 'room.1'
const MEMBER_COUNT = 1_000

// Symptom: each `presence op=get` at a full key cost 0.9 ms and 507 kB. Cause: its members were joined for each answer.
it('encodes the members of a key once for all who ask, until one of them changes', () => {
  let readCount = 0
  const member = (id: string, data: number): Member => {
    const json = `{"id":"${id}","data":${data}}`
    return {
      id,
      byteLength: json.length,
      get json() {
        readCount++
        return json
      },
    }
  }
  const members = new Members(() => undefined)
  for (let index = 0; index < MEMBER_COUNT; index++) {
    members.set({ key: KEY, member: member(`m${index}`, 0), stamp: 1, node: 'n' })
  }
  const readsOf = (times: number) => {
    readCount = 0
    for (let time = 0; time < times; time++) members.encodedOf(KEY)
    return readCount
  }
  expect(readsOf(100)).toBe(MEMBER_COUNT)
  expect(readsOf(100)).toBe(0)
  members.set({ key: 'room.2', member: member('m', 0), stamp: 2, node: 'n' })
  expect(readsOf(1), 'another key').toBe(0)
  members.set({ key: KEY, member: member('m1', 7), stamp: 2, node: 'n' })
  expect(readsOf(100)).toBe(MEMBER_COUNT)
  expect(JSON.parse(members.encodedOf(KEY).toString())).toContainEqual({ id: 'm1', data: 7 })
  members.remove('n', KEY, 'm1')
  expect(JSON.parse(members.encodedOf(KEY).toString())).toHaveLength(MEMBER_COUNT - 1)
})
