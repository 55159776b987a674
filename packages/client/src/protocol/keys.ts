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
  return isValid(text, WILDCARD)
}

/** Whether `text` is a valid pattern [P-3.3]. Cost: O(length), at most 255 characters. */
export function isPattern(text: string): boolean {
  return isValid(text, WILDCARD_IN_WORD)
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
  return defectOf(text, WILDCARD, 'a key has no wildcards')
}

/** Why `text` is not a valid pattern; `undefined` for a valid one. */
export function patternDefect(text: string): string | undefined {
  return defectOf(text, WILDCARD_IN_WORD, 'a wildcard is a word of its own, between dots')
}

/** Words may be empty, as in AMQP. Nothing is normalized. */
function isValid(text: string, misplacedWildcard: RegExp): boolean {
  const isText = typeof text === 'string' && !!text
  return isText && !isTooLong(text) && !FORBIDDEN.test(text) && !misplacedWildcard.test(text)
}

/** A UTF-16 unit takes one to three bytes: most texts need no count. */
function isTooLong(text: string): boolean {
  const { length } = text
  const isNear = length * 3 > MAX_KEY_BYTES
  return isNear && (length > MAX_KEY_BYTES || new TextEncoder().encode(text).length > MAX_KEY_BYTES)
}

/** In words, why {@link isValid} is false: apart, so that a bundle for production has no words. */
function defectOf(text: string, misplacedWildcard: RegExp, rule: string): string | undefined {
  if (typeof text !== 'string') return 'it is not a text'
  if (isTooLong(text)) return `longer than ${MAX_KEY_BYTES} bytes`
  const at = text.search(FORBIDDEN)
  if (at >= 0) return `space, control character or surrogate at ${at}`
  if (misplacedWildcard.test(text)) return `${rule}: ${text}`
  return text === '' ? 'it is empty' : undefined
}
