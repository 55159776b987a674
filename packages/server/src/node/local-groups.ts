import { isErrorCode, isGroup, validatePattern, WebMQError } from 'webmq-client/protocol'
import type { Logger } from '../base/logger.js'
import { andThen, type MaybePromise } from '../base/maybe-promise.js'
import { isReserved } from '../ports/reserved-keys.js'
import type { Author } from '../publishing/author.js'
import type { Publisher } from '../publishing/publisher.js'
import { LocalMember, type QueueGroups, type SlotName } from '../queue-groups/index.js'
import type { LocalHandler } from '../routing/in-process/listeners.js'
import { parseJson } from '../routing/in-process/parse-json.js'
import { MAX_WITHIN_MS } from '../session/handlers/request.js'
import { ProcessDraft } from './process-draft.js'
import type { RespondOptions } from './webmq-server.js'

/** What the members and requests of the process work with. */
export interface LocalGroupsContext {
  readonly groups: QueueGroups
  readonly maxPayloadBytes: number
  readonly logger: Pick<Logger, 'error'>
}

/** What sends the requests of the process. */
export interface RequestsContext {
  readonly publisher: Pick<Publisher, 'request'>
  readonly author: Author
}

/** Time for a reply, unless the caller says another. */
const DEFAULT_TIMEOUT_MS = 10_000

/**
 * Makes a function of the process a member of a queue group. Resolves, once all nodes know it, to a function that ends it.
 * @throws {WebMQError} `E_UNSUPPORTED`, `E_LISTEN_LIMIT`, `E_BROKER_UNAVAILABLE`.
 */
export function joinLocally(
  context: LocalGroupsContext,
  name: SlotName,
  handler: LocalHandler,
): MaybePromise<() => void> {
  const { groups, maxPayloadBytes, logger } = context
  const member = new LocalMember({
    groups,
    maxPayloadBytes,
    parse: parseJson,
    handle: (payload, key) => handler(payload, { key }),
    onError: (err, key) => logger.error({ err, key, ...name }, 'a member of a queue group failed'),
  })
  return andThen(groups.join(name, member), () => () => {
    member.close()
    groups.leave(name, member)
    groups.requests.left(member)
  })
}

/** The group of responders that give no name: those of one pattern share its requests. */
export function respondersOf(pattern: string, { group }: RespondOptions = {}): SlotName {
  return { kind: 'respond', group: group ?? DEFAULT_GROUP, pattern }
}

const DEFAULT_GROUP = 'responders'

/**
 * Sends a request to one responder; resolves with its reply.
 * @throws {WebMQError} `E_NO_RESPONDERS`, `E_TIMEOUT`, `E_RESPONSE` or another code of the responder, and as `publish`.
 */
export async function requestLocally(
  { publisher, author }: RequestsContext,
  key: string,
  payload: unknown,
  timeoutMs = DEFAULT_TIMEOUT_MS,
): Promise<unknown> {
  if (!(timeoutMs >= 1 && timeoutMs <= MAX_WITHIN_MS)) {
    throw new WebMQError('E_OPTION_INVALID', { detail: `timeoutMs is 1 to ${MAX_WITHIN_MS}` })
  }
  const draft = new ProcessDraft().fill({ key, payload })
  const taken = await publisher.request(author, draft, draft.isBinary, Math.ceil(timeoutMs))
  const reply = await taken.reply
  if (!reply.isError) return reply.isBinary ? reply.payload : parseJson(reply.payload)
  const { code, message } = Object(parseJson(reply.payload)) as { readonly code?: unknown; readonly message?: unknown }
  const known = typeof code === 'string' && isErrorCode(code) ? code : 'E_RESPONSE'
  throw new WebMQError(known, typeof message === 'string' ? { message } : {})
}

/** @throws {WebMQError} `E_PATTERN_INVALID` */
export function assertLocalPattern(pattern: string): void {
  validatePattern(pattern)
  if (isReserved(pattern))
    throw new WebMQError('E_PATTERN_INVALID', { detail: 'patterns that begin with $ are reserved for servers' })
}

/** @throws {WebMQError} `E_OPTION_INVALID` */
export function assertGroup(group: string): void {
  if (!isGroup(group)) throw new WebMQError('E_OPTION_INVALID', { detail: `group: ${group}` })
}
