/** `$`. */
const MARK = 0x24

/**
 * Whether a key, or a pattern, is of the servers alone: its first word begins with `$` [P-3.6]. Clients can neither publish to it
 * nor listen with it, and no wildcard of theirs matches it.
 */
export function isReserved(keyOrPattern: string): boolean {
  return keyOrPattern.charCodeAt(0) === MARK
}
