import { refusalOf } from 'webmq-client/protocol'
import { andThen } from '../../base/maybe-promise.js'
import { assertMayListen } from '../../identity/access.js'
import { assertKeyWords } from '../../ports/word-limits.js'
import { MAX_PAGE_MESSAGES, type RangeOptions, type Replay, readLog } from '../../replay/replay.js'
import { assertMeta } from '../opening.js'
import type { SessionServices } from '../services.js'
import type { Session } from '../session.js'
import type { Handler, MessageOf } from './handler.js'

/** Messages sent when the request names neither a number nor a start. */
const DEFAULT_LAST = 100

/** Sends messages of a key from the log, directly after the answer with their number. */
export const history: Handler<'history'> = (session, services, message) => {
  const { broker, replays } = services
  const { id, key } = message
  assertMayRead(session, services, message)
  const request = { id, meta: message.meta, ...rangeOf(message) }
  const isBackwards = message.reverse === true || message.before !== undefined
  const answer = { keepsNewest: isBackwards, isNewestFirst: message.reverse === true }
  const send = (page: Replay) => {
    if (session.isClosed) return
    // A new token may have come while the request waited.
    assertMayListen(session, key)
    replays.send(session, request, page, answer)
  }
  const read = () =>
    andThen(readLog(broker, request, key, session), (page) =>
      withCutReported(message, isBackwards ? newestOf(message, page) : page),
    )
  return replays.read(session, read, send, answer)
}

/** Says when fewer messages come than were asked for because the log no longer has the older ones [P-15.6]. */
function withCutReported({ last, limit }: MessageOf<'history'>, page: Replay): Replay {
  const isReported = page.isCut === true && (last ?? limit) !== undefined && page.gap === undefined
  return isReported ? { ...page, gap: 'history-expired' } : page
}

/** Checks limits and grants. @throws {WebMQError} `E_UNSUPPORTED`, `E_KEY_INVALID`, `E_FORBIDDEN`. */
export function assertMayRead(
  session: Session,
  { broker, metaRules }: SessionServices,
  { key, meta }: Pick<MessageOf<'history'>, 'key'> & { readonly meta?: true | undefined },
): void {
  if (!broker.capabilities.history) throw refusalOf('E_UNSUPPORTED', { detail: 'history' })
  assertKeyWords(key, session.limits, refusalOf)
  assertMayListen(session, key)
  if (meta === true) assertMeta(metaRules, [key])
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
    return { since, before, rewindMs, last: Math.min(newestCountOf(message), MAX_PAGE_MESSAGES), view: 'texts' }
  const isOpen = since === undefined && rewindMs === undefined && limit === undefined
  return { since, rewindMs, limit, last: last ?? (isOpen ? DEFAULT_LAST : undefined), view: 'texts' }
}
