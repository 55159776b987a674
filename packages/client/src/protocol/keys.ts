import { WebMQError } from './errors.js'
import { MAX_KEY_BYTES } from './limits.js'

const DOT = 0x2e
const STAR = 0x2a
const HASH = 0x23

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
  return defectOf(text, false)
}

/** What keeps `text` from being a pattern, in words; `undefined` for a pattern. */
export function patternDefect(text: string): string | undefined {
  return defectOf(text, true)
}

/** One pass that counts UTF-8 bytes without encoding. Words may be empty, as in AMQP; no normalization takes place. */
function defectOf(text: string, wildcards: boolean): string | undefined {
  const { length } = text
  if (length === 0) return 'it is empty'
  let bytes = 0
  for (let at = 0; at < length && bytes <= MAX_KEY_BYTES; at++) {
    const unit = text.charCodeAt(at)
    if (unit <= 0x20 || (unit >= 0x7f && unit <= 0x9f)) return `space or control character at ${at}`
    if (unit === STAR || unit === HASH) {
      if (!wildcards) return `wildcard at ${at}`
      if (!isAlone(text, at)) return `wildcard inside a word at ${at}`
    }
    if (unit < 0x80) bytes += 1
    else if (unit < 0x800) bytes += 2
    else if (unit < 0xd800 || unit > 0xdfff) bytes += 3
    else {
      const next = text.charCodeAt(++at)
      // A lone surrogate has no UTF-8 form: it would turn into U+FFFD on the wire, another key.
      if (unit > 0xdbff || !(next >= 0xdc00 && next <= 0xdfff)) return `lone surrogate at ${at - 1}`
      bytes += 4
    }
  }
  return bytes > MAX_KEY_BYTES ? `longer than ${MAX_KEY_BYTES} bytes` : undefined
}

function isAlone(text: string, at: number): boolean {
  return (at === 0 || text.charCodeAt(at - 1) === DOT) && (at + 1 === text.length || text.charCodeAt(at + 1) === DOT)
}
