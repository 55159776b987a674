import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Member, memberOf } from './member.js'
import { Watchers } from './watchers.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** Watchers, what they were told, and members that tests change. */
function fixture() {
  const members = new Map<string, Member>()
  const told: string[] = []
  const watchers = new Watchers({
    transport: { multicast: (_groups, data) => void told.push(data as string) },
    find: (key, id) => members.get(`${key} ${id}`),
    now: () => performance.now(),
  })
  return {
    told,
    watchers,
    watch(key: string, count: number) {
      for (let watcher = 0; watcher < count; watcher++) watchers.watch(key)
    },
    change(key: string, id: string, data: string) {
      const before = members.get(`${key} ${id}`)
      members.set(`${key} ${id}`, memberOf(id, `{"id":"${id}","data":${data}}`))
      watchers.changed(key, id, before)
    },
  }
}

describe('differences of watched keys', () => {
  it('of a key with few watchers go out 20 ms after the first change', async () => {
    const { told, watch, change } = fixture()
    watch('room', 10)
    for (let round = 0; round < 5; round++) {
      change('room', 'a', `${round}`)
      change('room', 'b', `${round}`)
      await vi.advanceTimersByTimeAsync(20)
      expect(told).toHaveLength(round + 1)
    }
    expect(told[4]).toBe('presence room\n{"update":[{"id":"a","data":4},{"id":"b","data":4}]}')
  })

  it('take about a millisecond per turn of the event loop', async () => {
    const { told, watch, change } = fixture()
    for (let key = 0; key < 40; key++) {
      watch(`room.${key}`, 100)
      change(`room.${key}`, 'a', '1')
    }
    vi.advanceTimersByTime(20)
    expect(told.length).toBeGreaterThan(5)
    expect(told.length, 'units of a turn').toBeLessThan(15)
    await vi.advanceTimersByTimeAsync(20)
    expect(told.map((text) => text.split('\n')[0])).toEqual(
      Array.from({ length: 40 }, (_, key) => `presence room.${key}`),
    )
  })

  it('of a dear key wait for further changes, up to a second, and do not hold up others', async () => {
    const { told, watch, change } = fixture()
    watch('crowd', 100_000)
    watch('room', 2)
    const of = (key: string) => told.filter((text) => text.startsWith(`presence ${key}`)).length
    for (let round = 0; round < 200; round++) {
      change('crowd', 'a', `${round}`)
      change('room', 'a', `${round}`)
      await vi.advanceTimersByTimeAsync(20)
    }
    expect(of('crowd')).toBeGreaterThanOrEqual(4)
    expect(of('crowd')).toBeLessThanOrEqual(5)
    // When the crowd is told, the room has its turn after it, together with the next change here.
    expect(of('room')).toBe(200 - of('crowd'))
    await vi.advanceTimersByTimeAsync(1_020)
    expect(told.findLast((text) => text.startsWith('presence crowd'))).toContain('"data":199')
  })

  it('go out at once when the key is watched by one more, and end with the last watcher', async () => {
    const { told, watchers, watch, change } = fixture()
    watch('room', 3)
    change('room', 'a', '1')
    expect(watchers.flush('room')).toBeGreaterThan(3)
    expect(told).toHaveLength(1)
    expect(watchers.flush('room'), 'nothing is left').toBe(0)
    change('room', 'a', '2')
    for (let watcher = 0; watcher < 3; watcher++) watchers.unwatch('room')
    await vi.advanceTimersByTimeAsync(2_000)
    expect(told).toHaveLength(1)
    expect(watchers.keyCount).toBe(0)
  })
})
