import { trieWords } from '../../../kernel/ports/trie-words.js'

/** Steps that a search may still take. One is about 30 ns. */
export interface StepBudget {
  left: number
}

/**
 * One pattern, prepared to be compared with many keys.
 *
 * Cost: one comparison of the text before the first wildcard and after the last one. If both match, O(words of the
 * pattern x words of the key) steps at worst, because only the last `#` is retried: a match in which an earlier `#`
 * takes more words also exists with the last one taking them.
 */
export class PatternMatcher {
  readonly #words: readonly string[]
  readonly #isKey: boolean
  /** The words before the first wildcard, and after the last one. */
  readonly #prefix: string | undefined
  readonly #suffix: string | undefined
  readonly #pattern: string

  /** @param pattern A valid pattern. */
  constructor(pattern: string) {
    const words = trieWords(pattern)
    const firstWildcard = words.findIndex(isWildcard)
    this.#pattern = pattern
    this.#words = words
    this.#isKey = firstWildcard < 0
    const before = words.slice(0, Math.max(0, firstWildcard))
    const behind = words.slice(words.findLastIndex(isWildcard) + 1)
    this.#prefix = before.length === 0 ? undefined : before.join('.')
    this.#suffix = behind.length === 0 ? undefined : behind.join('.')
  }

  /**
   * Whether the pattern matches a key.
   * @param budget Loses the steps that were taken, which may be more than it has.
   */
  matches(key: string, budget: StepBudget): boolean {
    if (this.#isKey) return key === this.#pattern
    if (!begins(key, this.#prefix) || !ends(key, this.#suffix)) return false
    const words = this.#words
    let wordAt = 0
    let keyAt = 0
    // Where to go on after the last `#`, and the first word of the key that it has not taken yet.
    let retryWordAt = -1
    let retryKeyAt = 0
    while (keyAt <= key.length) {
      budget.left--
      const word = words[wordAt]
      if (word === '#') {
        if (++wordAt === words.length) return true
        retryWordAt = wordAt
        retryKeyAt = keyAt
        continue
      }
      if (word !== undefined) {
        const end = wordEnd(key, keyAt)
        if (word === '*' || (end - keyAt === word.length && key.startsWith(word, keyAt))) {
          wordAt++
          keyAt = end + 1
          continue
        }
      }
      if (retryWordAt < 0) return false
      retryKeyAt = wordEnd(key, retryKeyAt) + 1
      keyAt = retryKeyAt
      wordAt = retryWordAt
    }
    // The key is used up: only a `#` may be left.
    return wordAt === words.length || (wordAt === words.length - 1 && words[wordAt] === '#')
  }
}

function isWildcard(word: string): boolean {
  return word === '*' || word === '#'
}

/** Whether the key begins with these whole words. */
function begins(key: string, words: string | undefined): boolean {
  if (words === undefined) return true
  return key.startsWith(words) && (key.length === words.length || key[words.length] === '.')
}

/** Whether the key ends with these whole words. */
function ends(key: string, words: string | undefined): boolean {
  if (words === undefined) return true
  return key.endsWith(words) && (key.length === words.length || key[key.length - words.length - 1] === '.')
}

/** Index of the dot that ends the word, or the length. */
function wordEnd(key: string, start: number): number {
  const dot = key.indexOf('.', start)
  return dot < 0 ? key.length : dot
}
