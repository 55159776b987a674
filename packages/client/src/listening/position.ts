import { partitionOf } from '../protocol/index.js'

/** The offset of a position that has an order [P-8.1]: base 36, without leading zeros. */
const OFFSET = /:(0|[1-9a-z][0-9a-z]{0,10})$/

/**
 * Whether a message at `position` is included in everything up to `seen`. If either is unknown: no. Positions of
 * different epochs, and those without a valid offset, have no order. Of joined positions, every one must be included.
 *
 * They are compared as text, because every message has one: of two offsets, the shorter one is smaller.
 */
export function isSeen(position: string | undefined, seen: string | undefined): boolean {
  if (position === undefined || seen === undefined) return false
  if (position === seen) return true
  if (position.includes(',') || seen.includes(',')) {
    const places = seen.split(',')
    return position.split(',').every((one) => places.some((place) => isSeen(one, place)))
  }
  const excess = position.length - seen.length
  if (excess > 0 || (excess === 0 && position > seen)) return false
  const epochEnd = position.search(OFFSET)
  return epochEnd >= 0 && epochEnd === seen.search(OFFSET) && seen.startsWith(position.slice(0, epochEnd))
}

/**
 * Everything up to `seen`, and now up to `position`: the newest place in each partition [P-8.10]. A place in a log without
 * partitions stands alone.
 * @param isCatchingUp Only places that are known to be ahead count.
 */
export function moved(
  seen: string | undefined,
  position: string | undefined,
  isCatchingUp?: boolean,
): string | undefined {
  if (!position || isSeen(position, seen)) return seen
  if (!partitionOf(position)) return isCatchingUp && !isSeen(seen, position) ? seen : position
  let places = seen?.split(',').filter(partitionOf) ?? []
  for (const place of position.split(',')) {
    const partition = partitionOf(place)
    const before = places.find((other) => partitionOf(other) === partition)
    if (isSeen(place, before) || (isCatchingUp && !isSeen(before, place))) continue
    places = [...places.filter((other) => other !== before), place]
  }
  return places.join() || seen
}
