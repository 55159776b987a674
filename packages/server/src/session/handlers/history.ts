import { WebMQError } from 'webmq-client/protocol'
import type { Broker } from '../../ports/broker.js'
import { andThen, type MaybePromise } from '../../ports/maybe-promise.js'
import { formatPosition } from '../../ports/position.js'
import type { ConnectionId } from '../../ports/transport.js'
import { MAX_PAGE_MESSAGES, type RangeOptions, type Replay, readLog } from '../../replay/replay.js'
import type { ReplaySender } from '../../replay/sender.js'
import type { Handler, HandlerContext, MessageOf } from './handler.js'

/** What `history` may use. */
export interface HistoryContext extends HandlerContext {
  readonly connection: ConnectionId
  readonly broker: Pick<Broker, 'capabilities' | 'read' | 'position'>
  readonly replays: Pick<ReplaySender, 'read' | 'send'>
  mayListen(key: string): boolean
}

/** Messages sent when the request names neither a number nor a start. */
const DEFAULT_LAST = 100

/** Sends messages of a key from the log, directly after the answer with their number. */
export const history: Handler<'history', HistoryContext> = (context, message) => {
  const { broker, connection, replays } = context
  const { id, key } = message
  if (!broker.capabilities.history) throw new WebMQError('E_UNSUPPORTED', { detail: 'history' })
  assertGranted(context, key)
  const request = { id, ...rangeOf(message) }
  const answer = { isNewestFirst: message.reverse === true }
  const send = (page: Replay) => {
    if (context.isClosed) return
    // A new token may have come while the request waited.
    assertGranted(context, key)
    replays.send(connection, request, page, answer)
  }
  const read = () => {
    const first = readLog(broker, request, key)
    return message.reverse === true ? andThen(first, (first) => readNewest(context, message, first)) : first
  }
  return replays.read(connection, read, send, answer)
}

function assertGranted(context: HistoryContext, key: string): void {
  if (!context.mayListen(key)) throw new WebMQError('E_FORBIDDEN', { detail: `listen ${key}` })
}

/** Reads on to the end of the log, because `reverse` cannot be continued [P-6.11]. `hasMore`: older ones are left out. */
function readNewest(context: HistoryContext, message: MessageOf<'history'>, page: Replay): MaybePromise<Replay> {
  const { messages, position, gap, hasMore } = page
  if (hasMore && position !== undefined) {
    const rest = readLog(context.broker, { since: formatPosition(position) }, message.key)
    return andThen(rest, (rest) => {
      const reason = gap ?? rest.gap
      const both = {
        ...rest,
        messages: [...messages, ...rest.messages],
        ...(reason === undefined ? {} : { gap: reason }),
      }
      return readNewest(context, message, both)
    })
  }
  const wantedCount = newestCountOf(message)
  const count = Math.min(wantedCount, MAX_PAGE_MESSAGES)
  // Whether there are still older ones is not known.
  return { ...page, messages: messages.slice(-count), hasMore: wantedCount > count && messages.length >= count }
}

function newestCountOf({ last, limit }: MessageOf<'history'>): number {
  return last ?? limit ?? DEFAULT_LAST
}

function rangeOf(message: MessageOf<'history'>): RangeOptions {
  const { since, rewindMs, last, limit, reverse } = message
  if (reverse === true) return { since, rewindMs, last: Math.min(newestCountOf(message), MAX_PAGE_MESSAGES) }
  const isOpen = since === undefined && rewindMs === undefined && limit === undefined
  return { since, rewindMs, limit, last: last ?? (isOpen ? DEFAULT_LAST : undefined) }
}
