import { DISCONNECT_CODES, SUMMARY } from '../../doors/http/api/operator-shapes.js'
import { answer, choice, count, name, type ValueOf } from '../../kernel/base/shape.js'
import type { NodeMessage } from '../nodes/index.js'
import { QUERY, ROWS } from './connection-list.js'

const TARGET = answer({ by: choice(['user', 'session', 'address']), value: name('Of the user, session or address.') })

export type DisconnectTarget = ValueOf<typeof TARGET>

export type DisconnectCode = (typeof DISCONNECT_CODES)[number]

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
