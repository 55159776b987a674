import { ALL, DISCONNECT_CODES, MAX_PAGE_ROWS, ROW, SESSION, SUMMARY, USER } from '../../../features/operators/index.js'
import {
  answer,
  anything,
  choice,
  count,
  flag,
  integer,
  list,
  name,
  object,
  oneOf,
  optional,
  text,
} from '../../../kernel/base/shape.js'
import { route } from './route.js'
import { ADDRESS, EPHEMERAL, KEY, LOGGED_MESSAGE, MESSAGE, POSITION, TOKEN_ID, UNTIL } from './shapes.js'
import { STREAM_ROUTES } from './stream-routes.js'

/** Messages of one answer. */
const MAX_HISTORY_MESSAGES = 1_000
export const DEFAULT_HISTORY_MESSAGES = 100
const MAX_BATCH_MESSAGES = 1_000
export const DEFAULT_PAGE_ROWS = 100
/** Sessions of a user at a node. The number of all is beside them. */
export const MAX_SHOWN_SESSIONS = 16

const MISSING = list(name('The name of a node.'), {
  description: 'Nodes of which nothing is in this answer: they did not answer in time, or cannot.',
})

const PUBLISHED = answer({
  duplicate: flag({ description: 'A message with the same id was accepted before; this one was not delivered again.' }),
  position: optional(POSITION),
})

const NEXT = text({
  maxLength: 64,
  pattern: '^[A-Za-z0-9_-]{1,36}:\\d{1,16}$',
  description: '`next` of a page, absent on the last one. A page may be shorter than `limit` and have it.',
})

const CODE = optional(
  choice(DISCONNECT_CODES, {
    default: DISCONNECT_CODES[0],
    description:
      'What clients are told. After `E_DISCONNECTED_BY_OPERATOR` they stay away, after `E_TOKEN_EXPIRED` they come ' +
      'back with a new token, after `E_DRAIN` with the same.',
  }),
)

const LIMIT = (what: string, maximum: number, standard: number) =>
  optional(integer({ minimum: 1, maximum, default: standard, description: `Most ${what}.` }))

/** All routes of the HTTP API. The name of a row is its `operationId`. */
export const ROUTES = {
  publish: route({
    method: 'POST',
    path: '/api/publish',
    access: 'client',
    summary: 'Publish a message',
    description:
      'Answers once the broker has accepted the message. A body of `application/octet-stream` is a binary payload; its ' +
      'key then is in the query. A retry with the same id is found to be a duplicate.',
    parameters: { key: optional(KEY), ephemeral: optional(EPHEMERAL) },
    body: {
      shape: MESSAGE,
      size: 'message',
      examples: {
        json: { key: 'chat.42.message', payload: { text: 'hello' }, id: 'order-1017' },
        binary: { key: 'chat.42.message', base64: 'aGVsbG8=' },
      },
    },
    takesBytes: true,
    takesIdempotencyKey: true,
    answer: PUBLISHED,
    errors: [
      'E_KEY_INVALID',
      'E_MESSAGE_INVALID',
      'E_PAYLOAD_INVALID',
      'E_STATE_LIMIT',
      'E_BROKER_UNAVAILABLE',
      'E_TIMEOUT',
    ],
  }),
  publishBatch: route({
    method: 'POST',
    path: '/api/publish/batch',
    access: 'client',
    summary: 'Publish several messages',
    description:
      'Publishes them in order, and answers once the broker has accepted all of them. One that is not valid or not ' +
      'granted refuses the whole batch. After E_BROKER_UNAVAILABLE or E_TIMEOUT some may have been accepted: give each an id, and ' +
      'send the batch again.',
    parameters: {},
    body: {
      shape: object({ messages: list(MESSAGE, { minItems: 1, maxItems: MAX_BATCH_MESSAGES }) }),
      size: 'batch',
      examples: {
        two: {
          messages: [
            { key: 'chat.42.message', payload: 'one' },
            { key: 'chat.42.message', payload: 'two' },
          ],
        },
      },
    },
    answer: answer({ results: list(PUBLISHED, { description: 'One for each message, in their order.' }) }),
    errors: ['E_KEY_INVALID', 'E_PAYLOAD_INVALID', 'E_STATE_LIMIT', 'E_BROKER_UNAVAILABLE', 'E_TIMEOUT'],
  }),
  history: route({
    method: 'GET',
    path: '/api/history',
    access: 'client',
    summary: 'Read messages of a key from the log',
    description:
      'Without `since` and `rewindMs`, the newest messages. With `before`, the newest before that position: page back ' +
      'with the position of the oldest message. With `since` or `rewindMs`, the oldest after it: read on from ' +
      '`position` while `hasMore` is true. A client needs the grant to listen to the key.',
    parameters: {
      key: KEY,
      since: optional(POSITION),
      before: optional(POSITION),
      rewindMs: optional(count({ description: 'Only messages that were logged within this time before now.' })),
      last: optional(
        integer({ minimum: 1, maximum: MAX_HISTORY_MESSAGES, description: 'How many, the newest, also with `since`.' }),
      ),
      limit: LIMIT('messages', MAX_HISTORY_MESSAGES, DEFAULT_HISTORY_MESSAGES),
      reverse: optional(flag({ default: false, description: 'Newest first.' })),
    },
    answer: answer({
      messages: list(LOGGED_MESSAGE),
      position: POSITION,
      hasMore: flag({ description: 'The log has more after `position`.' }),
      isTruncated: flag({
        description: 'Older messages of the range were left out, because the answer would be too large.',
      }),
      gap: optional(
        text({
          maxLength: 64,
          description:
            'Why messages of the range may be missing. `history-expired` without `since` and `rewindMs`: fewer than asked for, because the log no longer has the older ones.',
        }),
      ),
    }),
    errors: ['E_KEY_INVALID', 'E_POSITION_INVALID', 'E_UNSUPPORTED', 'E_NODE_BEHIND', 'E_BROKER_UNAVAILABLE'],
  }),
  ...STREAM_ROUTES,
  presence: route({
    method: 'GET',
    path: '/api/presence',
    access: 'client',
    summary: 'List the members of a key',
    description: 'The members on all nodes. A client needs the grant to listen to the key.',
    parameters: { key: KEY },
    answer: answer({
      members: list(
        answer({
          id: text({ maxLength: 64, description: 'The same for the member on all nodes.' }),
          userId: optional(USER),
          data: optional(anything({ description: 'What the member tells of itself.' })),
        }),
      ),
    }),
    errors: ['E_KEY_INVALID'],
  }),
  connections: route({
    method: 'GET',
    path: '/api/connections',
    access: 'operator',
    summary: 'List connections',
    description:
      'Those of the node that answers, of another one, or of all. A page ends with `next`: give it as `after` for the ' +
      'next page, to any node.',
    parameters: {
      node: optional(
        text({
          maxLength: 36,
          description: `The name of a node, or \`${ALL}\`. Default: the node at which the page before ended, or the one that answers.`,
        }),
      ),
      user: optional(USER),
      address: optional(ADDRESS),
      session: optional(SESSION),
      after: optional(NEXT),
      limit: LIMIT('connections', MAX_PAGE_ROWS, DEFAULT_PAGE_ROWS),
    },
    answer: answer({
      node: name('The node that answers.'),
      connections: list(
        answer({
          node: name('The node that has the connection.'),
          ...ROW,
        }),
      ),
      missing: MISSING,
      next: optional(NEXT),
    }),
  }),
  user: route({
    method: 'GET',
    path: '/api/user',
    access: 'operator',
    summary: 'Find a user on all nodes',
    description: 'The nodes at which the user is connected, as far as they answer within half a second.',
    parameters: { user: USER },
    answer: answer({
      nodes: list(
        answer({
          node: name('The name of the node.'),
          connections: count(),
          sessions: list(SESSION, { description: `The first ${MAX_SHOWN_SESSIONS}.` }),
        }),
      ),
      missing: MISSING,
    }),
  }),
  patterns: route({
    method: 'GET',
    path: '/api/patterns',
    access: 'operator',
    summary: 'List the patterns with the most listeners on this node',
    description: 'Every node answers for itself; `node` says which one it was.',
    parameters: { limit: LIMIT('patterns', MAX_PAGE_ROWS, DEFAULT_PAGE_ROWS) },
    answer: answer({
      node: name('The node that answers.'),
      patternCount: count({ description: 'All patterns of the node.' }),
      patterns: list(answer({ pattern: name('A pattern.'), listeners: count() })),
    }),
  }),
  disconnect: route({
    method: 'POST',
    path: '/api/disconnect',
    access: 'operator',
    summary: 'End connections on all nodes',
    description:
      'Ends the connections of a user or an address, or one session. The other nodes end theirs as soon as the broker ' +
      'has brought them the request.',
    parameters: {},
    body: {
      shape: oneOf([
        object({ user: USER, code: CODE }),
        object({ session: SESSION, code: CODE }),
        object({ address: ADDRESS, code: CODE }),
      ]),
      size: 'small',
      examples: { user: { user: 'ann' } },
    },
    answer: answer({
      node: name('The node that answers.'),
      disconnected: count({ description: 'Connections of this node that were ended.' }),
    }),
    errors: ['E_BROKER_UNAVAILABLE'],
  }),
  revoke: route({
    method: 'POST',
    path: '/api/revoke',
    access: 'operator',
    summary: 'Revoke tokens on all nodes',
    description:
      'Revokes one token, or all tokens of a user that were issued until now. Their connections end, and no node ' +
      'accepts them again. A node that starts later learns it from the others.',
    parameters: {},
    body: {
      shape: oneOf([object({ user: USER, until: UNTIL }), object({ tokenId: TOKEN_ID, until: UNTIL })]),
      size: 'small',
      examples: { user: { user: 'ann', until: 4_102_444_800 }, token: { tokenId: '0c6f2a', until: 4_102_444_800 } },
    },
    answer: answer({
      isKept: flag({ description: 'False when no such token can be valid any more: then there is nothing to keep.' }),
    }),
    errors: ['E_BROKER_UNAVAILABLE'],
  }),
  info: route({
    method: 'GET',
    path: '/api/info',
    access: 'operator',
    summary: 'Describe the nodes',
    description: 'This node, and all nodes that answer within half a second.',
    parameters: {},
    answer: answer({ node: name('The node that answers.'), nodes: list(SUMMARY), missing: MISSING }),
  }),
  config: route({
    method: 'GET',
    path: '/api/config',
    access: 'operator',
    summary: 'Show the options of this node',
    description: 'The effective options, with all secrets hidden.',
    parameters: {},
    answer: answer({ node: name('The node that answers.'), options: anything({ description: 'By name.' }) }),
  }),
  openapi: route({
    method: 'GET',
    path: '/api/openapi.json',
    access: 'everybody',
    summary: 'This document',
    description: 'OpenAPI 3.1.',
    parameters: {},
    answer: anything({ description: 'An OpenAPI document.' }),
  }),
} as const

export type RouteName = keyof typeof ROUTES
