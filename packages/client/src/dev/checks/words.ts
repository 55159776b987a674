/** Texts that JavaScript makes of a value that is missing. */
const MISSING = /^(undefined|null|NaN|)$/

/** Limits memory and lines of a page whose keys contain ids. */
const MAX_WARNINGS = 20

const warned = new Set<string>()

/** Warns once of a key or pattern with a word that most likely was a variable without a value, as in `chat..message`. */
export function warnOfWords(text: string): void {
  const word = text.split('.').find((one) => MISSING.test(one))
  if (word === undefined || warned.has(text) || warned.size >= MAX_WARNINGS) return
  warned.add(text)
  const what = word === '' ? 'an empty word' : `the word "${word}"`
  console.warn(`webmq: "${text}" has ${what}: is one of its variables missing? It is sent as it is.`)
}
