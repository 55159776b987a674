import type { HistoryRules } from '../../ports/history-rules.js'
import {
  firstWordsOf,
  mayOverlap,
  type Partitioning,
  partitionOfWords,
  sharedWordsOf,
} from '../../ports/partition-of.js'

/** First words whose partition is cached; a full cache is cleared. */
const MAX_REMEMBERED = 10_000

/** Which partitions keys and patterns concern. */
export class PartitionMap {
  readonly #partitioning: Partitioning
  readonly #rules: HistoryRules
  readonly #all: readonly number[]
  readonly #byWords = new Map<string, number>()

  constructor(partitioning: Partitioning, rules: HistoryRules) {
    this.#partitioning = partitioning
    this.#rules = rules
    this.#all = Array.from({ length: partitioning.count }, (_, partition) => partition)
  }

  /** The partition of a key; `undefined` if the key is not logged. Cost: two look-ups for a cached key. */
  ofKey(key: string): number | undefined {
    return this.#rules.ruleOf(key) === undefined
      ? undefined
      : this.#ofWords(firstWordsOf(key, this.#partitioning.words))
  }

  /** The partitions that may have messages which the pattern matches, in their order. */
  ofPattern(pattern: string): readonly number[] {
    const rules = this.rulesOf(pattern)
    if (rules.length === 0) return []
    const { words } = this.#partitioning
    const found = new Set<number>()
    for (const each of rules) {
      const shared = sharedWordsOf(pattern, words) ?? sharedWordsOf(each, words)
      if (shared === undefined) return this.#all
      found.add(this.#ofWords(shared))
    }
    return [...found].sort((one, other) => one - other)
  }

  /** As {@link ofPattern}, for several patterns. */
  ofPatterns(patterns: readonly string[]): readonly number[] {
    const found = new Set(patterns.flatMap((pattern) => this.ofPattern(pattern)))
    return [...found].sort((one, other) => one - other)
  }

  /** Patterns of the rules that may log keys of this pattern. */
  rulesOf(pattern: string): readonly string[] {
    return this.#rules.patterns.filter((rule) => mayOverlap(rule, pattern))
  }

  /** Whether the pattern may match keys that are not logged. */
  hasUnlogged(pattern: string): boolean {
    return !this.#rules.covers(pattern)
  }

  #ofWords(firstWords: string): number {
    const known = this.#byWords.get(firstWords)
    if (known !== undefined) return known
    const partition = partitionOfWords(firstWords, this.#partitioning.count)
    if (this.#byWords.size >= MAX_REMEMBERED) this.#byWords.clear()
    this.#byWords.set(firstWords, partition)
    return partition
  }
}
