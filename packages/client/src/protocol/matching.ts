/**
 * Whether a pattern matches a key: AMQP 0-9-1 topic semantics [P-3.4], `*` for exactly one word (which may be empty),
 * `#` for zero or more. Both must be valid; this function does not check them.
 *
 * Cost: O(words of the pattern x bytes of the key) at worst. Only the last `#` is retried: a match in which an earlier
 * `#` takes more words also exists with the last `#` taking them, so choices do not nest. Walking along both strings
 * costs a third of splitting them.
 */
export function matches(pattern: string, key: string): boolean {
  let patternAt = 0
  let keyAt = 0
  // Where to continue after the last `#`, and the first key word that it has not taken yet.
  let retryPatternAt = -1
  let retryKeyAt = 0
  while (keyAt <= key.length) {
    if (patternAt <= pattern.length) {
      const patternEnd = wordEnd(pattern, patternAt)
      const word = pattern.slice(patternAt, patternEnd)
      if (word === '#') {
        if (patternEnd === pattern.length) return true
        patternAt = retryPatternAt = patternEnd + 1
        retryKeyAt = keyAt
        continue
      }
      const keyEnd = wordEnd(key, keyAt)
      if (word === '*' || (keyEnd - keyAt === word.length && key.startsWith(word, keyAt))) {
        patternAt = patternEnd + 1
        keyAt = keyEnd + 1
        continue
      }
    }
    if (retryPatternAt < 0) return false
    keyAt = retryKeyAt = wordEnd(key, retryKeyAt) + 1
    patternAt = retryPatternAt
  }
  // The key is used up: the rest of the pattern must match nothing.
  return patternAt > pattern.length || /^#(\.#)*$/.test(pattern.slice(patternAt))
}

/** Index of the dot that ends the word, or the length. A position of `length + 1` means that no word is left. */
function wordEnd(text: string, start: number): number {
  const dot = text.indexOf('.', start)
  return dot < 0 ? text.length : dot
}
