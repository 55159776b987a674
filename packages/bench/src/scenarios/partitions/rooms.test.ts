import { describe, expect, it } from 'vitest'
import { chooseRooms, partitionCountOf, partitionOf, shuffledRooms } from './rooms.js'

const OF = { roomCount: 1_000, count: 100, seed: 1 }

describe('rooms', () => {
  it('have the partitions of docs/brokers.md: FNV-1a of the first word', () => {
    expect([0, 1, 2, 999].map((room) => partitionOf(room, 1))).toEqual([0, 0, 0, 0])
    const counts = Array.from({ length: 16 }, () => 0)
    for (let room = 0; room < 1_000; room++) counts[partitionOf(room, 16)] = (counts[partitionOf(room, 16)] ?? 0) + 1
    for (const count of counts) expect(count).toBeGreaterThan(30)
  })

  it('are chosen once each, in as few partitions as possible or at random', () => {
    for (const partitions of [1, 4, 16]) {
      for (const layout of ['sharded', 'spread'] as const) {
        const rooms = chooseRooms(OF, layout, partitions)
        expect(new Set(rooms).size).toBe(100)
        expect(rooms.every((room) => room >= 0 && room < 1_000)).toBe(true)
      }
      expect(partitionCountOf(chooseRooms(OF, 'sharded', partitions), partitions)).toBe(partitions === 16 ? 2 : 1)
      expect(partitionCountOf(chooseRooms(OF, 'spread', partitions), partitions)).toBe(partitions)
    }
  })

  it('are the same for the same seed', () => {
    expect(shuffledRooms(50, 3)).toEqual(shuffledRooms(50, 3))
    expect(shuffledRooms(50, 3)).not.toEqual(shuffledRooms(50, 4))
    expect(shuffledRooms(50, 3).toSorted((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, room) => room))
  })
})
