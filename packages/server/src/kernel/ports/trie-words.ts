/**
 * The words of a pattern in one form for all patterns of the same meaning: a run of wildcards becomes its `*`s and then
 * at most one `#`. `#.#` means `#`, and `#.*` means `*.#`. Otherwise `#.#.#…` would make a chain of nodes that all
 * match.
 */
export function trieWords(pattern: string): string[] {
  const words: string[] = []
  let hashWaits = false
  for (const word of pattern.split('.')) {
    if (word === '#') {
      hashWaits = true
      continue
    }
    if (hashWaits && word !== '*') {
      words.push('#')
      hashWaits = false
    }
    words.push(word)
  }
  if (hashWaits) words.push('#')
  return words
}
