/** The offset of a position that has an order [P-8.1]: base 36, without leading zeros. */
const OFFSET = /:(0|[1-9a-z][0-9a-z]{0,10})$/

/**
 * Whether a message at `position` is included in everything up to `seen`. If either is unknown: no. Positions of
 * different epochs, and those without a valid offset, have no order.
 *
 * They are compared as text, because every message has one: of two offsets, the shorter one is smaller.
 */
export function isSeen(position: string | undefined, seen: string | undefined): boolean {
  if (position === undefined || seen === undefined) return false
  if (position === seen) return true
  const excess = position.length - seen.length
  if (excess > 0 || (excess === 0 && position > seen)) return false
  const epochEnd = position.search(OFFSET)
  return epochEnd >= 0 && epochEnd === seen.search(OFFSET) && seen.startsWith(position.slice(0, epochEnd))
}
