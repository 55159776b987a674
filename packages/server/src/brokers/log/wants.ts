import { PatternMatcher } from '../../patterns/pattern-matcher.js'
import type { Wants } from './segmented-log.js'

/** The key, if the patterns are one pattern without a wildcard. */
export function onlyKeyOf(patterns: readonly string[]): string | undefined {
  const [only = ''] = patterns
  return patterns.length === 1 && !only.includes('*') && !only.includes('#') ? only : undefined
}

/** Wants the messages that any pattern matches. */
export function matchedBy(patterns: readonly string[]): Wants {
  if (patterns.length === 1 && patterns[0] === '#') return () => true
  const matchers = patterns.map((pattern) => new PatternMatcher(pattern))
  const [only] = matchers
  if (only !== undefined && matchers.length === 1) return (key, _timeMs, budget) => only.matches(key, budget)
  return (key, _timeMs, budget) => matchers.some((matcher) => matcher.matches(key, budget))
}
