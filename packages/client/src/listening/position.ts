import { partitionOf } from '../protocol/index.js'

/** The offset of a position that has an order [P-8.1]: base 36, without leading zeros. */
const OFFSET = /:(0|[1-9a-z][0-9a-z]{0,10})$/

/**
 * Whether a message at `position` is included in everything up to `seen`. If either is unknown: no. Positions of
 * different epochs, and those without a valid offset, have no order. Neither may be joined [P-8.10]: see {@link moved}.
 *
 * They are compared as text, because every message has one: of two offsets, the shorter one is smaller.
 */
export function isSeen(position: string | undefined, seen: string | undefined): boolean {
  if (!position || !seen) return false
  if (position === seen) return true
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
  if (!position) return seen
  const isKept = (before: string | undefined, place: string) =>
    isSeen(place, before) || (isCatchingUp && !isSeen(before, place))
  if (!partitionOf(position)) return isKept(seen, position) ? seen : position
  const places = seen && partitionOf(seen) ? seen.split(',') : []
  for (const place of position.split(',')) {
    const at = places.findIndex((other) => partitionOf(other) === partitionOf(place))
    if (!isKept(places[at], place)) places[at < 0 ? places.length : at] = place
  }
  return places.join() || seen
}
