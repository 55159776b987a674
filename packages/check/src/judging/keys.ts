/** Whether a pattern matches a key, as in [P-3.4]. */
export function matches(pattern: string, key: string): boolean {
  return matchesWords(pattern.split('.'), key.split('.'), false)
}

/** Whether a pattern matches every key that the other one matches [P-3.5]. */
export function contains(pattern: string, other: string): boolean {
  return matchesWords(pattern.split('.'), other.split('.'), true)
}

/** With `isPattern` the words may be wildcards: `*` is contained in `*` and `#`, `#` in `#` alone. */
function matchesWords(pattern: readonly string[], words: readonly string[], isPattern: boolean): boolean {
  const [first, ...rest] = pattern
  if (first === undefined) return words.length === 0
  if (first === '#') {
    return (
      matchesWords(rest, words, isPattern) || (words.length > 0 && matchesWords(pattern, words.slice(1), isPattern))
    )
  }
  const [word] = words
  if (word === undefined || (isPattern && word === '#')) return false
  return (first === '*' || first === word) && matchesWords(rest, words.slice(1), isPattern)
}
