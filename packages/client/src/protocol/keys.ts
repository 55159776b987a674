import { WebMQError } from './errors.js'
import { MAX_KEY_BYTES } from './limits.js'

/**
 * What may stand in no key and no pattern [P-3.1]. A lone surrogate would turn into U+FFFD on the wire: another key.
 */
const FORBIDDEN = /[^!-~\u{a0}-\u{10ffff}]|\p{Surrogate}/u
const WILDCARD = /[*#]/
const WILDCARD_IN_WORD = /[*#][^.]|[^.][*#]/

/** Whether `text` may be published to [P-3.1]. Cost: O(length), at most 255 characters. */
export function isKey(text: string): boolean {
  return keyDefect(text) === undefined
}

/** Whether `text` may be listened with [P-3.3]. Cost: O(length), at most 255 characters. */
export function isPattern(text: string): boolean {
  return patternDefect(text) === undefined
}

/**
 * Returns if `key` may be published to.
 * @throws {WebMQError} `E_KEY_INVALID`; its message says what is wrong and where.
 */
export function validateKey(key: string): void {
  const detail = keyDefect(key)
  if (detail !== undefined) throw new WebMQError('E_KEY_INVALID', { detail })
}

/**
 * Returns if `pattern` may be listened with.
 * @throws {WebMQError} `E_PATTERN_INVALID`; its message says what is wrong and where.
 */
export function validatePattern(pattern: string): void {
  const detail = patternDefect(pattern)
  if (detail !== undefined) throw new WebMQError('E_PATTERN_INVALID', { detail })
}

/** What keeps `text` from being a key, in words; `undefined` for a key. */
export function keyDefect(text: string): string | undefined {
  return defectOf(text, WILDCARD)
}

/** What keeps `text` from being a pattern, in words; `undefined` for a pattern. */
export function patternDefect(text: string): string | undefined {
  return defectOf(text, WILDCARD_IN_WORD)
}

/** Words may be empty, as in AMQP; no normalization takes place. */
function defectOf(text: string, misplacedWildcard: RegExp): string | undefined {
  // A UTF-16 unit takes one to three bytes: mostly there is nothing to count.
  const { length } = text
  if (length * 3 > MAX_KEY_BYTES && (length > MAX_KEY_BYTES || new TextEncoder().encode(text).length > MAX_KEY_BYTES)) {
    return `longer than ${MAX_KEY_BYTES} bytes`
  }
  const at = text.search(FORBIDDEN)
  if (at >= 0) return `space, control character or lone surrogate at ${at}`
  const wildcardAt = text.search(misplacedWildcard)
  if (wildcardAt >= 0) return `misplaced wildcard at ${wildcardAt}`
  return text === '' ? 'it is empty' : undefined
}
