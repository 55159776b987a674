import { createRandom, randomInteger } from '../../load/random.js'

/** How the rooms of the measured node lie in the partitions. */
export const LAYOUTS: readonly Layout[] = ['sharded', 'spread']

/**
 * `sharded`: in as few partitions as possible, as when the application sends users of a room to nodes by its partition.
 * `spread`: chosen at random.
 */
export type Layout = 'sharded' | 'spread'

/** FNV-1a, 32 bits, as docs/brokers.md has it. */
const FNV_OFFSET_BASIS = 0x811c9dc5
const FNV_PRIME = 0x01000193

/** The key of a room; its first word names the room. */
export function keyOf(room: number): string {
  return `room${room}.tick`
}

/** The partition of a room, among so many. */
export function partitionOf(room: number, partitionCount: number): number {
  const [word = ''] = keyOf(room).split('.')
  let hash = FNV_OFFSET_BASIS
  for (const byte of Buffer.from(word)) hash = Math.imul(hash ^ byte, FNV_PRIME)
  return (hash >>> 0) % partitionCount
}

/** All rooms, in a random order that a seed decides. */
export function shuffledRooms(roomCount: number, seed: number): number[] {
  const random = createRandom(seed, 0)
  const rooms = Array.from({ length: roomCount }, (_, room) => room)
  for (let at = rooms.length - 1; at > 0; at--) {
    const other = randomInteger(random, at + 1)
    ;[rooms[at], rooms[other]] = [rooms[other] as number, rooms[at] as number]
  }
  return rooms
}

/** Chooses so many rooms. */
export function chooseRooms(
  { roomCount, count, seed }: { readonly roomCount: number; readonly count: number; readonly seed: number },
  layout: Layout,
  partitionCount: number,
): number[] {
  const rooms = shuffledRooms(roomCount, seed)
  if (layout === 'spread') return rooms.slice(0, count)
  const byPartition = new Map<number, number[]>()
  for (const room of rooms) {
    const partition = partitionOf(room, partitionCount)
    byPartition.set(partition, [...(byPartition.get(partition) ?? []), room])
  }
  // The largest first, so that they are fewest.
  return [...byPartition.values()]
    .sort((one, other) => other.length - one.length)
    .flat()
    .slice(0, count)
}

/** How many partitions these rooms lie in. */
export function partitionCountOf(rooms: readonly number[], partitionCount: number): number {
  return new Set(rooms.map((room) => partitionOf(room, partitionCount))).size
}
