/** Keys and patterns that begin with this belong to the servers [P-3.6]. */
const RESERVED_PREFIX = '$'

/**
 * Whether a key or a pattern belongs to the servers. Clients can neither publish to it nor listen with it, no wildcard
 * of theirs matches it, and it is never logged.
 */
export function isReserved(keyOrPattern: string): boolean {
  return keyOrPattern.startsWith(RESERVED_PREFIX)
}
