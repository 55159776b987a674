import { type Codes, PANES, type PaneName } from './messages.js'

/** Code of the examples, by their names and pages. */
const FILES = import.meta.glob<string>('./examples/*/*.js', { query: '?raw', import: 'default', eager: true })

export function exampleCodes(name: string): Codes {
  const code = (pane: PaneName) => FILES[`./examples/${name}/${pane}.js`]?.trimEnd() ?? ''
  return { listen: code('listen'), publish: code('publish') }
}

/** Names of all examples. */
export const EXAMPLES = [...new Set(Object.keys(FILES).map((file) => file.split('/')[2] ?? ''))].toSorted()

export { PANES }
