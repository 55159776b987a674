import { amount, answer, choice, count, name, optional, type ValueOf } from '../../kernel/base/shape.js'
import type { NodeMessage } from '../nodes/index.js'
import { QUERY, ROWS } from './connection-list.js'

const TARGET = answer({ by: choice(['user', 'session', 'address']), value: name('Of the user, session or address.') })

export type DisconnectTarget = ValueOf<typeof TARGET>

/** Codes that an operator may end connections with. After the first, clients do not come back by themselves. */
export const DISCONNECT_CODES = ['E_DISCONNECTED_BY_OPERATOR', 'E_TOKEN_EXPIRED', 'E_DRAIN'] as const

export type DisconnectCode = (typeof DISCONNECT_CODES)[number]

/**
 * What a node tells of itself. Rates are per second, since the last summary or, without one, since the start. Nodes of an
 * older version do not tell what is optional.
 */
export const SUMMARY = answer({
  node: name('The name of the node, new with every start.'),
  version: name('The version of the server.'),
  status: name('`ok` or `draining`.'),
  uptimeMs: amount(),
  connections: count(),
  patterns: count({ description: 'Patterns with a listener on the node.' }),
  receivedPerSecond: amount({ description: 'Messages of clients, since the last request or the start.' }),
  sentPerSecond: amount({ description: 'Messages to clients, since the last request or the start.' }),
  broker: name('The name of the broker.'),
  brokerStatus: name('`up`, `blocked` or `down`.'),
  cpu: optional(
    amount({ description: 'Processor cores that the process keeps busy, since the last request or the start.' }),
  ),
  memoryBytes: optional(count({ description: 'Resident memory of the process.' })),
  eventLoopDelayMs: optional(
    amount({ description: 'The longest delay of the event loop since the last request; absent in the first answer.' }),
  ),
  brokerMs: optional(
    amount({
      description:
        'Mean time until the broker accepted a message, since the last request or the start; absent if it accepted none.',
    }),
  ),
  recovered: optional(
    count({ description: 'Listens that got all that they had missed after a reconnect, since the start.' }),
  ),
  gaps: optional(count({ description: 'Gaps told to listeners, one per pattern, since the start.' })),
  refused: optional(
    count({ description: 'Messages, requests of the HTTP API and upgrades answered with an error, since the start.' }),
  ),
  slowConsumers: optional(
    count({ description: 'Connections closed because the client read too slowly, since the start.' }),
  ),
  differentPeers: optional(
    count({ description: 'Other nodes with other options that all must share, or of another version.' }),
  ),
})

export type NodeSummary = ValueOf<typeof SUMMARY>

const MESSAGES = {
  /** To all: end these connections. */
  disconnect: answer({ target: TARGET, code: choice(DISCONNECT_CODES) }),
  /** To all: tell of yourself. Every node answers with `summary`. */
  ask: answer({ round: count() }),
  summary: answer({ round: count(), summary: SUMMARY }),
  /** To one node or all: list connections. Each node answers with `rows`. */
  list: answer({ round: count(), query: QUERY }),
  rows: answer({ round: count(), ...ROWS }),
}

type Messages = { [Kind in keyof typeof MESSAGES]: { readonly kind: Kind } & ValueOf<(typeof MESSAGES)[Kind]> }

export type OperatorMessage = Messages[keyof Messages]
export type OperatorAnswer = Messages['summary' | 'rows']

/** Reads a message; `undefined` when it is malformed. */
export function operatorMessageFrom({ kind, fields }: NodeMessage): OperatorMessage | undefined {
  const shape = Object.hasOwn(MESSAGES, kind) ? MESSAGES[kind as keyof Messages] : undefined
  return shape?.defect(fields) === undefined && shape !== undefined
    ? ({ ...fields, kind } as OperatorMessage)
    : undefined
}
