import { withoutSecrets } from '../../../options/options.js'
import { DEFAULT_PAGE_ROWS } from '../routes.js'
import type { Handler } from './handler.js'

export const patterns: Handler<'patterns'> = ({ node }, { query: { limit = DEFAULT_PAGE_ROWS } }) => {
  const counts = new Map<string, number>()
  // A pattern has a route for each variant of its listens.
  for (const { pattern, references } of node.patterns()) counts.set(pattern, (counts.get(pattern) ?? 0) + references)
  const rows = Array.from(counts, ([pattern, listeners]) => ({ pattern, listeners }))
  rows.sort((one, other) => other.listeners - one.listeners || (one.pattern < other.pattern ? -1 : 1))
  return { node: node.name, patternCount: counts.size, patterns: rows.slice(0, limit) }
}

export const config: Handler<'config'> = ({ node, options }) => ({
  node: node.name,
  options: withoutSecrets(options),
})
