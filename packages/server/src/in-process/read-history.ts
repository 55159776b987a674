import { type GapReason, validateKey } from 'webmq-client/protocol'
import type { Broker, InboundMessage } from '../ports/broker.js'
import { copyBytes } from '../ports/copy-bytes.js'
import { andThen, type MaybePromise } from '../ports/maybe-promise.js'
import { formatPosition, parsePosition } from '../ports/position.js'
import type { LocalMessage } from './listeners.js'
import { parseJson } from './parse-json.js'

/** Options of {@link WebMQServer.history}. */
export interface HistoryQuery {
  /** Messages at most; default 100. */
  readonly limit?: number
  /** Begin after this position; the oldest `limit` messages after it then, otherwise the newest. */
  readonly since?: string
  /** Only what was logged within this time before now. */
  readonly rewindMs?: number
  /** Newest first: the newest `limit` messages, also with `since` or `rewindMs`. */
  readonly reverse?: boolean
}

/** A message of the log. */
export interface HistoryMessage extends LocalMessage {
  /** What the JSON of a text message says, or a copy of the bytes of a binary one. */
  readonly payload: unknown
}

/** What the log holds of a key. */
export interface HistoryResult {
  readonly messages: readonly HistoryMessage[]
  /** Place up to which they are complete: ask on from there when there are more. */
  readonly position: string
  /** Whether the log has more after `position`. */
  readonly hasMore: boolean
  /** Why something may be missing that was asked for. */
  readonly gap?: GapReason
}

const DEFAULT_LIMIT = 100

/** Reads the log for the process that the server is part of; see {@link WebMQServer.history}. */
export function readHistory(
  broker: Pick<Broker, 'read'>,
  key: string,
  { limit = DEFAULT_LIMIT, since, rewindMs, reverse = false }: HistoryQuery,
): MaybePromise<HistoryResult> {
  validateKey(key)
  const isNewest = reverse || (since === undefined && rewindMs === undefined)
  const range = {
    ...(since === undefined ? undefined : { since: parsePosition(since) }),
    ...(rewindMs === undefined ? undefined : { rewindMs }),
    ...(isNewest ? { last: limit } : { limit }),
  }
  return andThen(broker.read(range, [key]), ({ messages, position, isPartial, gap }) => {
    const found = messages.map(historyMessage)
    const result = {
      messages: reverse ? found.reverse() : found,
      position: formatPosition(position),
      hasMore: isPartial,
    }
    return gap === undefined ? result : { ...result, gap }
  })
}

function historyMessage({ key, payload, isBinary, position }: InboundMessage): HistoryMessage {
  const body = isBinary ? copyBytes(payload) : parseJson(payload)
  return position === undefined ? { key, payload: body } : { key, payload: body, position: formatPosition(position) }
}
