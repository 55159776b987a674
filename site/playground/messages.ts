/** Names of the two pages of a playground. */
export const PANES = ['listen', 'publish'] as const
export type PaneName = (typeof PANES)[number]
/** The code of each page. */
export type Codes = Readonly<Record<PaneName, string>>

/** What the page asks of the worker. */
export type Order = { readonly run: Codes } | { readonly act: 'cut' | 'join' | 'restart' | 'lose' }

const KINDS = ['state', 'recovered', 'gap', 'log', 'error', 'server'] as const

/** What the worker tells: a row of the event log. */
export interface Told {
  readonly pane: PaneName | 'server'
  readonly kind: (typeof KINDS)[number]
  readonly text: string
}

const MAX_TEXT_LENGTH = 400

/** Reads a message of the sandbox, whose code may send anything. */
export function toldOf(data: unknown): Told | undefined {
  const { pane, kind, text } = Object(data) as Partial<Record<keyof Told, unknown>>
  const knownPane = [...PANES, 'server' as const].find((name) => name === pane)
  const knownKind = KINDS.find((name) => name === kind)
  if (knownPane === undefined || knownKind === undefined || typeof text !== 'string') return undefined
  return { pane: knownPane, kind: knownKind, text: text.slice(0, MAX_TEXT_LENGTH) }
}
