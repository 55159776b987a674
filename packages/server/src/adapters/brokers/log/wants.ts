import type { HistoryRule, HistoryRules } from '../../../kernel/ports/history-rules.js'
import { PatternMatcher } from './pattern-matcher.js'
import type { Wants } from './segmented-log.js'

/** The key, if the patterns are one pattern without a wildcard. */
export function onlyKeyOf(patterns: readonly string[]): string | undefined {
  const [only = ''] = patterns
  return patterns.length === 1 && !only.includes('*') && !only.includes('#') ? only : undefined
}

export function matchedBy(patterns: readonly string[]): Wants {
  if (patterns.length === 1 && patterns[0] === '#') return () => true
  const matchers = patterns.map((pattern) => new PatternMatcher(pattern))
  const [only] = matchers
  if (only !== undefined && matchers.length === 1) return (key, _timeMs, budget) => only.matches(key, budget)
  return (key, _timeMs, budget) => matchers.some((matcher) => matcher.matches(key, budget))
}

/** What the rules of the keys let reads give of a log. */
export class Expiry {
  readonly #history: HistoryRules
  readonly #now: () => number

  /** @param now Unix time in milliseconds. */
  constructor(history: HistoryRules, now: () => number) {
    this.#history = history
    this.#now = now
  }

  /** The rule that bounds a read of one key; `undefined` for other reads. */
  ruleOf(patterns: readonly string[]): HistoryRule | undefined {
    const key = onlyKeyOf(patterns)
    return key === undefined ? undefined : this.#history.ruleOf(key)
  }

  /** Older messages are expired: reads never return them, so their loss is no gap. */
  oldestGivenMs(patterns: readonly string[]): number {
    const rule = this.ruleOf(patterns)
    const maxAgeMs = rule === undefined ? this.#history.maxAgeMs : rule.maxAgeMs
    return maxAgeMs === undefined ? 0 : this.#now() - maxAgeMs
  }

  /** The same messages without those that are expired now. */
  wants(isMatch: Wants, onAged?: () => void): Wants {
    if (!this.#history.hasAges) return isMatch
    const nowMs = this.#now()
    return (key, timeMs, budget, segment, index) => {
      if (!isMatch(key, timeMs, budget, segment, index)) return false
      const maxAgeMs = this.#history.ruleOf(key)?.maxAgeMs
      const isGiven = maxAgeMs === undefined || timeMs >= nowMs - maxAgeMs
      if (!isGiven) onAged?.()
      return isGiven
    }
  }
}
