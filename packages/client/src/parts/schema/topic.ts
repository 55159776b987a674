import { checkPattern } from '../../core/checks.js'
import type { StandardSchema } from '../../core/topics/standard-schema.js'
import { WebMQError } from '../../protocol/errors.js'

/** A word with a name: `{room}` is one word, `{#path}` any number of words. */
const NAMED = /^\{#?[A-Za-z_]\w*\}$/

/** A pattern whose words may have names. */
export class NamedPattern {
  /** The pattern for the server: `chat.*.message` of `chat.{room}.message`. */
  readonly pattern: string
  readonly hasNames: boolean
  /** As the app writes it. */
  readonly text: string
  readonly #words: readonly string[]
  readonly #named: readonly string[]

  /** @throws {WebMQError} `E_PATTERN_INVALID`, also when a word is named wrongly or two have the same name. */
  constructor(text: string) {
    this.text = text
    this.#named = text.split('.')
    this.#words = this.#named.map((word) => {
      if (!/[{}]/.test(word)) return word
      if (!NAMED.test(word)) throw new WebMQError('E_PATTERN_INVALID', { detail: `${word} is not {name} or {#name}` })
      return word[1] === '#' ? '#' : '*'
    })
    const names = this.#named.filter((word) => word[0] === '{').map(nameOf)
    if (new Set(names).size < names.length)
      throw new WebMQError('E_PATTERN_INVALID', { detail: `${text}: a name twice` })
    this.hasNames = names.length > 0
    this.pattern = this.#words.join('.')
    checkPattern(this.pattern)
  }

  /**
   * The words of the key that the named words stand for, joined by dots; `undefined` if the key does not match.
   *
   * Cost: as that of matching. Only the last `#` is retried: if several fit, the earlier ones take as few words as
   * possible.
   */
  paramsOf(key: string): Record<string, string> | undefined {
    const words = this.#words
    const keyWords = key.split('.')
    /** For each word of the pattern, the place after the last word of the key that it stands for. */
    const ends: number[] = []
    let at = 0
    let keyAt = 0
    let hashAt = -1
    while (at < words.length || keyAt < keyWords.length) {
      const word = words[at]
      if (word === '#') {
        hashAt = at
        ends[at++] = keyAt
      } else if (word !== undefined && keyAt < keyWords.length && (word === '*' || word === keyWords[keyAt])) {
        ends[at++] = ++keyAt
      } else {
        const taken = ends[hashAt] ?? keyWords.length
        if (taken >= keyWords.length) return undefined
        at = hashAt + 1
        keyAt = ends[hashAt] = taken + 1
      }
    }
    const params: Record<string, string> = {}
    for (const [index, word] of this.#named.entries()) {
      if (word[0] === '{') params[nameOf(word)] = keyWords.slice(ends[index - 1] ?? 0, ends[index]).join('.')
    }
    return params
  }
}

function nameOf(word: string): string {
  return word.replace(/[{#}]/g, '')
}

/** A pattern with the schema of its payloads. */
export class Topic extends NamedPattern {
  readonly schema: StandardSchema

  constructor(text: string, schema: StandardSchema) {
    super(text)
    this.schema = schema
  }
}
