import { type Fields, isCount, type NodeMessage } from '../../nodes/index.js'
import { type ConnectionRows, connectionRowsFrom, isText, type RowsQuery, rowsQueryFrom } from './connection-rows.js'

/** Which connections an operator ends: those of a user, of an address, or one session. */
export interface DisconnectTarget {
  readonly by: 'user' | 'session' | 'address'
  readonly value: string
}

/** Codes that an operator may end connections with. After the first, clients do not come back by themselves. */
export const DISCONNECT_CODES = ['E_DISCONNECTED_BY_OPERATOR', 'E_TOKEN_EXPIRED', 'E_DRAIN'] as const

export type DisconnectCode = (typeof DISCONNECT_CODES)[number]

/** What a node tells of itself. Rates are per second, since the last summary or, without one, since the start. */
export interface NodeSummary {
  readonly node: string
  readonly version: string
  readonly status: string
  readonly uptimeMs: number
  readonly connections: number
  readonly patterns: number
  /** Messages of clients. */
  readonly receivedPerSecond: number
  /** Messages to clients. */
  readonly sentPerSecond: number
  readonly broker: string
  readonly brokerStatus: string
}

/** A message between nodes about what operators ask for. */
export type OperatorMessage =
  /** To all: end these connections. */
  | { readonly kind: 'disconnect'; readonly target: DisconnectTarget; readonly code: DisconnectCode }
  /** To all: tell of yourself. Every node answers with `summary`. */
  | { readonly kind: 'ask'; readonly round: number }
  | { readonly kind: 'summary'; readonly round: number; readonly summary: NodeSummary }
  /** To one node or all: list connections. Each node answers with `rows`. */
  | { readonly kind: 'list'; readonly round: number; readonly query: RowsQuery }
  | { readonly kind: 'rows'; readonly round: number; readonly found: ConnectionRows }

export type OperatorAnswer = Extract<OperatorMessage, { kind: 'summary' | 'rows' }>

/** Reads a message; `undefined` when it is malformed. */
export function operatorMessageFrom({ node, kind, fields }: NodeMessage): OperatorMessage | undefined {
  const { target, code, round, summary, query } = fields
  if (kind === 'disconnect') {
    const known = DISCONNECT_CODES.find((name) => name === code)
    const { by, value } = Object(target) as Fields
    if (known === undefined || !isText(value)) return undefined
    return by === 'user' || by === 'session' || by === 'address'
      ? { kind, target: { by, value }, code: known }
      : undefined
  }
  if (!isCount(round)) return undefined
  if (kind === 'ask') return { kind, round }
  if (kind === 'list') {
    const asked = rowsQueryFrom(Object(query) as Fields)
    return asked && { kind, round, query: asked }
  }
  if (kind === 'rows') {
    const found = connectionRowsFrom(fields)
    return found && { kind, round, found }
  }
  const read = kind === 'summary' ? summaryFrom(Object(summary) as Fields, node) : undefined
  return read && { kind: 'summary', round, summary: read }
}

function summaryFrom(fields: Fields, node: string): NodeSummary | undefined {
  const { version, status, broker, brokerStatus } = fields
  const { uptimeMs, connections, patterns, receivedPerSecond, sentPerSecond } = fields
  if (!isText(version) || !isText(status) || !isText(broker) || !isText(brokerStatus)) return undefined
  if (!isAmount(uptimeMs) || !isAmount(connections) || !isAmount(patterns)) return undefined
  if (!isAmount(receivedPerSecond) || !isAmount(sentPerSecond)) return undefined
  const counts = { uptimeMs, connections, patterns, receivedPerSecond, sentPerSecond }
  return { node, version, status, ...counts, broker, brokerStatus }
}

function isAmount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0
}
