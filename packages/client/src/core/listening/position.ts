/** Offset and fingerprint of a position [P-8.1]. One without a fingerprint, of an earlier server, has no order. */
const PLACE = /:\w+\.[\w-]{5}$/

/**
 * Whether a message at `position` is included in everything up to `seen`. If either is unknown: no. Positions of
 * different epochs, and those of another form, have no order. At one offset, another fingerprint is another message.
 *
 * They are compared as text, because every message has one: of two offsets, the shorter one is smaller. Fingerprints have
 * one length.
 */
export function isSeen(position: string | undefined, seen: string | undefined): boolean {
  if (position === undefined || seen === undefined) return false
  if (position === seen) return true
  const excess = position.length - seen.length
  if (excess > 0 || (!excess && position.slice(0, -6) >= seen.slice(0, -6))) return false
  const epochEnd = position.search(PLACE)
  return epochEnd >= 0 && epochEnd === seen.search(PLACE) && seen.startsWith(position.slice(0, epochEnd))
}
