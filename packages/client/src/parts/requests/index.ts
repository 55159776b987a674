import { checks } from '../../core/checks.js'
import type { WebMQClient } from '../../core/client.js'
import { type ClientOption, clientOf } from '../../core/of-client.js'
import type {
  KnownKey,
  KnownTopic,
  Payload,
  PayloadInput,
  Reply,
  ReplyInput,
  Topics,
} from '../../core/topics/topics.js'
import { groupsOf } from './group-client.js'
import type { Handler } from './joined-group.js'
import type { Membership, RequestOptions, Responder, RespondOptions, TaskHandler, WorkOptions } from './types.js'

export type * from './types.js'

/** The group of responders that give no name: those of one pattern share its requests. */
const RESPONDERS = 'responders'

/**
 * Sends a request to one responder, at any node. Resolves with its reply, which has the type that `Topic` declares for the key.
 * Without one it has that which its place asks for: `const sum: number = await request('sum', [1, 2])`.
 * @throws {WebMQError} `E_NO_RESPONDERS` at once, when nobody responds to the key; `E_TIMEOUT`, `E_DISCONNECTED`,
 *   `E_BROKER_UNAVAILABLE`: a responder may have it; `E_RESPONSE`, or the code of the responder; `E_ABORTED`,
 *   `E_KEY_INVALID`, `E_PAYLOAD_INVALID`, `E_PAYLOAD_TOO_LARGE`, `E_FORBIDDEN`, `E_RATE_LIMIT`, `E_UNSUPPORTED`,
 *   `E_QUEUE_FULL`, `E_CLOSED`.
 */
export async function request<const K extends string, T = Topics, R extends Reply<T, K> = Reply<T, K>>(
  key: KnownKey<T, K>,
  payload: PayloadInput<T, K>,
  { client: given, ...options }: RequestOptions & ClientOption<T> = {},
): Promise<R> {
  checks.part?.('request', options)
  const client = clientOf(given)
  const asked = groupsOf(client).ask(key, payload, options)
  client.connect().catch(() => undefined)
  return asked as Promise<R>
}

/**
 * Answers requests to the keys of a pattern. One responder of all nodes gets a request. Needs the grant to listen to the
 * pattern.
 * @throws {WebMQError} `E_PATTERN_INVALID`, `E_OPTION_INVALID`.
 */
export function respond<const K extends string, T = Topics>(
  pattern: KnownTopic<T, K>,
  responder: Responder<Payload<T, K>, ReplyInput<T, K>>,
  options: RespondOptions & ClientOption<T> = {},
): Membership {
  checks.part?.('respond', options)
  const { client, group = RESPONDERS, signal } = options
  return join(clientOf(client), pattern, responder as Handler, group, true, signal)
}

/**
 * Handles messages as a member of a queue group: of each message, one member of the group with this pattern gets it, over
 * all clients and nodes. Ordinary listeners get all messages too. Nothing is replayed: a group without members misses
 * messages. Needs the grant to listen to the pattern.
 * @throws {WebMQError} `E_PATTERN_INVALID`, `E_OPTION_INVALID`.
 */
export function work<const K extends string, T = Topics>(
  pattern: KnownTopic<T, K>,
  handler: TaskHandler<Payload<T, K>>,
  options: WorkOptions & ClientOption<T>,
): Membership {
  checks.part?.('work', options)
  const { client, group, signal } = options
  return join(clientOf(client), pattern, handler as Handler, group, false, signal)
}

function join(
  client: WebMQClient,
  pattern: string,
  handler: Handler,
  group: string,
  isResponder: boolean,
  signal: AbortSignal | undefined,
): Membership {
  const member = groupsOf(client).join(pattern, handler, group, isResponder, signal)
  client.connect().catch(() => undefined)
  return member
}
