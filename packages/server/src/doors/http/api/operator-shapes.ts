import { amount, answer, count, list, name, optional, text } from '../../../kernel/base/shape.js'

/** Rows of one page of a listing. */
export const MAX_PAGE_ROWS = 1_000
/** Patterns of a connection in a listing. The number of all is beside them. */
export const MAX_SHOWN_LISTENS = 16
/** Bytes of the `sub` or the `jti` of a token that the server accepts. */
export const MAX_CLAIM_CHARS = 255

/** Stands for all nodes where a name may be. Names are longer. */
export const ALL = 'all'
/** The id of a session. */
export const SESSION = text({
  maxLength: MAX_CLAIM_CHARS,
  description: 'The id of a session, as `welcome`, the log and `GET /api/connections` have it.',
  examples: ['Zx0aB3kQ9mT1uVwY'],
})
export const USER = text({ maxLength: MAX_CLAIM_CHARS, description: 'The `sub` of tokens.', examples: ['ann'] })

export const ROW = {
  session: SESSION,
  user: optional(USER),
  address: text({ minLength: 0, maxLength: 1_024, description: 'The IP address; empty if it is not known.' }),
  openedAt: text({ maxLength: 32, format: 'date-time' }),
  listenCount: count(),
  listens: list(name('A pattern.'), { maxItems: MAX_SHOWN_LISTENS, description: `The first ${MAX_SHOWN_LISTENS}.` }),
}

/** Codes that an operator may end connections with. After the first, clients do not come back by themselves. */
export const DISCONNECT_CODES = ['E_DISCONNECTED_BY_OPERATOR', 'E_TOKEN_EXPIRED', 'E_DRAIN'] as const

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
