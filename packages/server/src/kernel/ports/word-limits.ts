import { type ErrorCode, type refusalOf, WebMQError, type WebMQErrorOptions } from 'webmq-client/protocol'
import { trieWords } from './trie-words.js'

/** Limits of keys and patterns that come from clients. To match a pattern costs words of the key x words of the pattern. */
export interface WordLimits {
  /** Words of a key or a pattern. */
  readonly maxWords: number
  /** `#` in a pattern. */
  readonly maxHashes: number
}

/**
 * Checks the words of a valid key.
 * @param createError `refusalOf` for a key of a client; by default, the error has a stack.
 * @throws {WebMQError} `E_KEY_INVALID`; its message names the limit.
 */
export function assertKeyWords(
  key: string,
  { maxWords }: Pick<WordLimits, 'maxWords'>,
  createError: typeof refusalOf = createWithStack,
): void {
  const detail = wordsDefect(key, maxWords)
  if (detail !== undefined) throw createError('E_KEY_INVALID', { detail })
}

/**
 * Checks the words of a valid pattern.
 * @param createError As for {@link assertKeyWords}.
 * @throws {WebMQError} `E_PATTERN_INVALID`; its message names the limit.
 */
export function assertPatternWords(
  pattern: string,
  limits: WordLimits,
  createError: typeof refusalOf = createWithStack,
): void {
  const detail = patternWordsDefect(pattern, limits)
  if (detail !== undefined) throw createError('E_PATTERN_INVALID', { detail })
}

function createWithStack(code: ErrorCode, options?: WebMQErrorOptions): WebMQError {
  return new WebMQError(code, options)
}

/** Which limit a valid pattern exceeds. */
export function patternWordsDefect(pattern: string, { maxWords, maxHashes }: WordLimits): string | undefined {
  return wordsDefect(pattern, maxWords) ?? defect(countOf(pattern, '#'), '#', 'maxHashes', maxHashes)
}

/** Whether the pattern has a `#` before its last word: it has to be searched in a key, and is dear to match. */
export function isSearch(pattern: string): boolean {
  if (!pattern.includes('#')) return false
  const words = trieWords(pattern)
  return words.indexOf('#') < words.length - 1
}

function wordsDefect(text: string, maxWords: number): string | undefined {
  // A word and its dot have one character at least: most texts need no count.
  if (text.length < maxWords) return undefined
  return defect(countOf(text, '.') + 1, 'words', 'maxWords', maxWords)
}

function defect(count: number, what: string, limit: string, max: number): string | undefined {
  return count > max ? `${count} ${what}, at most ${max} (${limit})` : undefined
}

function countOf(text: string, part: string): number {
  let count = 0
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + 1)) count++
  return count
}
