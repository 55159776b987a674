import type { Codes, PaneName } from './messages.ts'

/** Code of the examples, by their names and pages. */
const FILES = import.meta.glob<string>('./examples/*/*.js', { query: '?raw', import: 'default', eager: true })

/** Names of all examples. */
export const EXAMPLES = [...new Set(Object.keys(FILES).map((file) => file.split('/')[2] ?? ''))].toSorted()

/** The code of an example. Without a publisher of its own, it has that of `recovered`. */
export function exampleCodes(name: string): Codes {
  const code = (example: string, pane: PaneName) => FILES[`./examples/${example}/${pane}.js`]?.trimEnd()
  return { listen: code(name, 'listen') ?? '', publish: code(name, 'publish') ?? code('recovered', 'publish') ?? '' }
}
