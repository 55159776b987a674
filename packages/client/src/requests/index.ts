import type { WebMQClient } from '../client.js'
import { ofClient, partOf } from '../of-client.js'
import type { KnownKey, KnownTopic, Payload, Topics } from '../topics.js'
import { GroupClient } from './group-client.js'
import type { Handler } from './joined-group.js'
import type { Membership, RequestOptions, Responder, RespondOptions, TaskHandler, WorkOptions } from './types.js'

export type * from './types.js'

const groupsOf = partOf((core) => new GroupClient(core))

/** The group of responders that give no name: those of one pattern share its requests. */
const RESPONDERS = 'responders'

/**
 * Sends a request to one responder, at any node. Resolves with its reply.
 * @throws {WebMQError} `E_NO_RESPONDERS` at once, when nobody responds to the key; `E_TIMEOUT`; `E_DISCONNECTED`: a
 *   responder may have it; `E_RESPONSE`, or the code of the responder; `E_ABORTED`, `E_KEY_INVALID`, `E_PAYLOAD_INVALID`,
 *   `E_PAYLOAD_TOO_LARGE`, `E_FORBIDDEN`, `E_RATE_LIMIT`, `E_UNSUPPORTED`, `E_QUEUE_FULL`, `E_CLOSED`.
 */
export function request<R = unknown, const K extends string = string>(
  key: KnownKey<Topics, K>,
  payload: Payload<Topics, K>,
  options?: RequestOptions,
): Promise<R>
// biome-ignore lint/suspicious/noExplicitAny: a caller who names R alone leaves T to its default, which has to fit every client
export function request<R = unknown, T = any, const K extends string = string>(
  client: WebMQClient<T>,
  key: KnownKey<T, K>,
  payload: Payload<T, K>,
  options?: RequestOptions,
): Promise<R>
export async function request(...args: readonly unknown[]): Promise<unknown> {
  const [client, key, payload, options] = ofClient<[key: string, payload: unknown, options?: RequestOptions]>(args)
  const asked = groupsOf(client).ask(key, payload, options)
  client.connect().catch(() => undefined)
  return asked
}

/**
 * Answers requests to the keys of a pattern. One responder of all nodes gets a request. Needs the grant to listen to the
 * pattern.
 * @throws {WebMQError} `E_PATTERN_INVALID`, `E_OPTION_INVALID`.
 */
export function respond<const K extends string>(
  pattern: KnownTopic<Topics, K>,
  responder: Responder<Payload<Topics, K>>,
  options?: RespondOptions,
): Membership
export function respond<T, const K extends string>(
  client: WebMQClient<T>,
  pattern: KnownTopic<T, K>,
  responder: Responder<Payload<T, K>>,
  options?: RespondOptions,
): Membership
export function respond(...args: readonly unknown[]): Membership {
  const [client, pattern, responder, options] =
    ofClient<[pattern: string, responder: Handler, options?: RespondOptions]>(args)
  return join(client, pattern, responder, options?.group ?? RESPONDERS, true, options?.signal)
}

/**
 * Handles messages as a member of a queue group: of each message, one member of the group with this pattern gets it, over
 * all clients and nodes. Ordinary listeners get all messages too. Nothing is replayed: a group without members misses
 * messages. Needs the grant to listen to the pattern.
 * @throws {WebMQError} `E_PATTERN_INVALID`, `E_OPTION_INVALID`.
 */
export function work<const K extends string>(
  pattern: KnownTopic<Topics, K>,
  handler: TaskHandler<Payload<Topics, K>>,
  options: WorkOptions,
): Membership
export function work<T, const K extends string>(
  client: WebMQClient<T>,
  pattern: KnownTopic<T, K>,
  handler: TaskHandler<Payload<T, K>>,
  options: WorkOptions,
): Membership
export function work(...args: readonly unknown[]): Membership {
  const [client, pattern, handler, { group, signal }] =
    ofClient<[pattern: string, handler: Handler, options: WorkOptions]>(args)
  return join(client, pattern, handler, group, false, signal)
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
