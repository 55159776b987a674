import { type GapReason, validateKey, WebMQError } from 'webmq-client/protocol'
import { copyBytes } from '../../kernel/base/copy-bytes.js'
import { andThen, type MaybePromise } from '../../kernel/base/maybe-promise.js'
import { parseJson } from '../../kernel/base/parse-json.js'
import type { Broker, InboundMessage } from '../../kernel/ports/broker.js'
import { formatPosition, parsePosition } from '../../kernel/ports/position.js'
import { assertKeyWords, type WordLimits } from '../../kernel/ports/word-limits.js'
import { type LocalMessage, shownAttributes } from '../../kernel/routing/local-listeners.js'

/** Options of {@link WebMQServer.history}. */
export interface HistoryQuery {
  /** Maximum number of messages; default 100. */
  readonly limit?: number
  /** Begin after this position, with the oldest `limit` messages. Without it: the newest. */
  readonly since?: string
  /** Only messages before this position: the newest `limit` of them. Not together with `since` and `rewindMs`. */
  readonly before?: string
  /** Only messages that were logged within this time before now. */
  readonly rewindMs?: number
  /** Newest first: the newest `limit` messages, also with `since` or `rewindMs`. */
  readonly reverse?: boolean
}

/** A message of the log. */
export interface HistoryMessage extends LocalMessage {
  /** The parsed JSON of a text message, or a copy of the bytes of a binary one. */
  readonly payload: unknown
}

/** Messages of a key from the log. */
export interface HistoryResult {
  readonly messages: readonly HistoryMessage[]
  /** The messages are complete up to this position: read on from here when there are more. */
  readonly position: string
  /** Whether the log has more after `position`. */
  readonly hasMore: boolean
  /**
   * Why messages of the range may be missing. `history-expired` without `since`: fewer than `limit` came, because the log no
   * longer has the older ones.
   */
  readonly gap?: GapReason
}

const DEFAULT_LIMIT = 100

/** Reads the log for the process that the server is part of; see {@link WebMQServer.history}. */
export function readHistory(
  broker: Pick<Broker, 'read'>,
  key: string,
  query: HistoryQuery,
  limits: Pick<WordLimits, 'maxWords'>,
): MaybePromise<HistoryResult> {
  const { limit = DEFAULT_LIMIT, since, before, rewindMs, reverse = false } = query
  validateKey(key)
  assertKeyWords(key, limits)
  for (const [name, value] of Object.entries({ limit, rewindMs }))
    if (value !== undefined && !(Number.isSafeInteger(value) && value >= 0))
      throw new WebMQError('E_OPTION_INVALID', { detail: `${name} is a whole number from 0` })
  if (before !== undefined && (since !== undefined || rewindMs !== undefined))
    throw new WebMQError('E_MESSAGE_INVALID', { detail: 'before excludes since and rewindMs' })
  const isNewest = reverse || (since === undefined && rewindMs === undefined)
  const range = {
    since: since === undefined ? undefined : parsePosition(since),
    before: before === undefined ? undefined : parsePosition(before),
    rewindMs,
    ...(isNewest ? { last: limit } : { limit }),
    view: 'texts' as const,
  }
  return andThen(broker.read(range, [key]), ({ messages, position, isPartial, isCut, ...read }) => {
    const gap = read.gap ?? (isCut === true && query.limit !== undefined ? 'history-expired' : undefined)
    const found = messages.map(historyMessage)
    const result = {
      messages: reverse ? found.reverse() : found,
      position: formatPosition(position),
      hasMore: isPartial,
    }
    return gap === undefined ? result : { ...result, gap }
  })
}

function historyMessage({ key, payload, isBinary, position, attributes }: InboundMessage): HistoryMessage {
  return {
    key,
    payload: isBinary ? copyBytes(payload) : payload.length === 0 ? undefined : parseJson(payload),
    ...(position === undefined ? undefined : { position: formatPosition(position) }),
    ...(attributes === undefined ? undefined : shownAttributes(attributes)),
  }
}
