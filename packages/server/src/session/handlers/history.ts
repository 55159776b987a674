import { refusalOf } from 'webmq-client/protocol'
import type { MetaRules } from '../../patterns/meta-rules.js'
import type { Broker } from '../../ports/broker.js'
import { andThen } from '../../ports/maybe-promise.js'
import type { ConnectionId } from '../../ports/transport.js'
import { assertKeyWords, type WordLimits } from '../../ports/word-limits.js'
import { MAX_PAGE_MESSAGES, type RangeOptions, type Replay, readLog } from '../../replay/replay.js'
import type { ReplaySender } from '../../replay/sender.js'
import type { Handler, HandlerContext, MessageOf } from './handler.js'
import { assertMeta } from './listen.js'

/** What `history` may use. */
export interface HistoryContext extends HandlerContext {
  readonly connection: ConnectionId
  readonly broker: Pick<Broker, 'capabilities' | 'read' | 'position'>
  readonly replays: Pick<ReplaySender, 'read' | 'send'>
  readonly limits: Pick<WordLimits, 'maxWords'>
  readonly metaRules: Pick<MetaRules, 'mayCover'>
  mayListen(key: string): boolean
}

/** Messages sent when the request names neither a number nor a start. */
const DEFAULT_LAST = 100

/** Sends messages of a key from the log, directly after the answer with their number. */
export const history: Handler<'history', HistoryContext> = (context, message) => {
  const { broker, connection, replays } = context
  const { id, key } = message
  assertMayRead(context, message)
  const request = { id, meta: message.meta, ...rangeOf(message) }
  const isBackwards = message.reverse === true || message.before !== undefined
  const answer = { keepsNewest: isBackwards, isNewestFirst: message.reverse === true }
  const send = (page: Replay) => {
    if (context.isClosed) return
    // A new token may have come while the request waited.
    assertGranted(context, key)
    replays.send(context, request, page, answer)
  }
  const read = () =>
    andThen(readLog(broker, request, key, context), (page) =>
      toldCut(message, isBackwards ? newestOf(message, page) : page),
    )
  return replays.read(connection, read, send, answer)
}

/** Says when fewer messages come than were asked for because the log no longer has the older ones [P-15.6]. */
function toldCut({ last, limit }: MessageOf<'history'>, page: Replay): Replay {
  const isTold = page.isCut === true && (last ?? limit) !== undefined && page.gap === undefined
  return isTold ? { ...page, gap: 'history-expired' } : page
}

/**
 * Checks limits and grants.
 * @throws {WebMQError} `E_UNSUPPORTED`, `E_KEY_INVALID`, `E_FORBIDDEN`.
 */
export function assertMayRead(
  context: HistoryContext,
  { key, meta }: Pick<MessageOf<'history'>, 'key' | 'meta'>,
): void {
  if (!context.broker.capabilities.history) throw refusalOf('E_UNSUPPORTED', { detail: 'history' })
  assertKeyWords(key, context.limits, refusalOf)
  assertGranted(context, key)
  assertMeta(context, key, meta)
}

function assertGranted(context: HistoryContext, key: string): void {
  if (!context.mayListen(key)) throw refusalOf('E_FORBIDDEN', { detail: `listen ${key}` })
}

/** `hasMore`: older messages may be left out. `reverse` cannot be continued [P-6.11]; `before` can [P-15.5]. */
function newestOf(message: MessageOf<'history'>, page: Replay): Replay {
  const wantedCount = newestCountOf(message)
  const count = Math.min(wantedCount, MAX_PAGE_MESSAGES)
  return { ...page, hasMore: wantedCount > count && page.messages.length >= count }
}

function newestCountOf({ last, limit }: MessageOf<'history'>): number {
  return last ?? limit ?? DEFAULT_LAST
}

function rangeOf(message: MessageOf<'history'>): RangeOptions {
  const { since, before, rewindMs, last, limit, reverse } = message
  if (reverse === true || before !== undefined)
    return { since, before, rewindMs, last: Math.min(newestCountOf(message), MAX_PAGE_MESSAGES) }
  const isOpen = since === undefined && rewindMs === undefined && limit === undefined
  return { since, rewindMs, limit, last: last ?? (isOpen ? DEFAULT_LAST : undefined) }
}
