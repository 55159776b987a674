import { PatternMatcher } from '../../patterns/pattern-matcher.js'
import type { Wants } from './segmented-log.js'

/** Whether the pattern is a key: it has no wildcard. */
export function isKeyPattern(pattern: string): boolean {
  return !pattern.includes('*') && !pattern.includes('#')
}

/** Wants the messages that any pattern matches. */
export function matchedBy(patterns: readonly string[]): Wants {
  if (patterns.length === 1 && patterns[0] === '#') return () => true
  const matchers = patterns.map((pattern) => new PatternMatcher(pattern))
  const [only] = matchers
  if (only !== undefined && matchers.length === 1) return (key, _timeMs, budget) => only.matches(key, budget)
  return (key, _timeMs, budget) => matchers.some((matcher) => matcher.matches(key, budget))
}
