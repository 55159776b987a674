import { WebMQError } from './errors.js'
import { MAX_KEY_BYTES } from './limits.js'

/**
 * Characters that no key and no pattern may contain [P-3.1]. A lone surrogate would become U+FFFD on the wire, and so
 * another key.
 */
const FORBIDDEN = /[^!-~\u{a0}-\u{d7ff}\u{e000}-\u{10ffff}]/u
const WILDCARD = /[*#]/
const WILDCARD_IN_WORD = /[*#][^.]|[^.][*#]/

/** Whether `text` is a valid key [P-3.1]. Cost: O(length), at most 255 characters. */
export function isKey(text: string): boolean {
  return keyDefect(text) === undefined
}

/** Whether `text` is a valid pattern [P-3.3]. Cost: O(length), at most 255 characters. */
export function isPattern(text: string): boolean {
  return patternDefect(text) === undefined
}

/**
 * Checks a key.
 * @throws {WebMQError} `E_KEY_INVALID`; its message names the problem and the place.
 */
export function validateKey(key: string): void {
  const detail = keyDefect(key)
  if (detail !== undefined) throw new WebMQError('E_KEY_INVALID', { detail })
}

/**
 * Checks a pattern.
 * @throws {WebMQError} `E_PATTERN_INVALID`; its message names the problem and the place.
 */
export function validatePattern(pattern: string): void {
  const detail = patternDefect(pattern)
  if (detail !== undefined) throw new WebMQError('E_PATTERN_INVALID', { detail })
}

/** Why `text` is not a valid key; `undefined` for a valid one. */
export function keyDefect(text: string): string | undefined {
  return defectOf(text, WILDCARD)
}

/** Why `text` is not a valid pattern; `undefined` for a valid one. */
export function patternDefect(text: string): string | undefined {
  return defectOf(text, WILDCARD_IN_WORD)
}

/** Words may be empty, as in AMQP. Nothing is normalized. */
function defectOf(text: string, misplacedWildcard: RegExp): string | undefined {
  // A UTF-16 unit takes one to three bytes: most texts need no count.
  const { length } = text
  if (length * 3 > MAX_KEY_BYTES && (length > MAX_KEY_BYTES || new TextEncoder().encode(text).length > MAX_KEY_BYTES)) {
    return `longer than ${MAX_KEY_BYTES} bytes`
  }
  const at = text.search(FORBIDDEN)
  if (at >= 0) return `space, control character or surrogate at ${at}`
  const wildcardAt = text.search(misplacedWildcard)
  if (wildcardAt >= 0) return `misplaced wildcard at ${wildcardAt}`
  return text === '' ? 'it is empty' : undefined
}
