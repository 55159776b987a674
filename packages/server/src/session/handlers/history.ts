import { WebMQError } from 'webmq-client/protocol'
import type { Broker } from '../../ports/broker.js'
import { andThen } from '../../ports/maybe-promise.js'
import type { ConnectionId } from '../../ports/transport.js'
import { MAX_PAGE_MESSAGES, type RangeOptions, readLog } from '../../replay/replay.js'
import type { ReplaySender } from '../../replay/sender.js'
import type { Handler, HandlerContext, MessageOf } from './handler.js'

/** What `history` may use. */
export interface HistoryContext extends HandlerContext {
  readonly connection: ConnectionId
  readonly broker: Pick<Broker, 'capabilities' | 'read' | 'position'>
  readonly replays: Pick<ReplaySender, 'turn' | 'send'>
  mayListen(key: string): boolean
}

/** Messages sent when the request names neither a number nor a start. */
const DEFAULT_LAST = 100

/** Sends messages of a key from the log, directly after the answer with their number. */
export const history: Handler<'history', HistoryContext> = (context, message) => {
  const { broker, connection, replays } = context
  const { id, key } = message
  if (!broker.capabilities.history) throw new WebMQError('E_UNSUPPORTED', { detail: 'history' })
  if (!context.mayListen(key)) throw new WebMQError('E_FORBIDDEN', { detail: `listen ${key}` })
  const request = { id, pattern: key, ...rangeOf(message) }
  return andThen(replays.turn(connection, request), () =>
    andThen(readLog(broker, request, key), (page) => {
      if (!context.isClosed) replays.send(connection, request, page, { isNewestFirst: message.reverse === true })
    }),
  )
}

function rangeOf({ since, rewindMs, last, limit, reverse }: MessageOf<'history'>): RangeOptions {
  if (reverse === true) return { since, rewindMs, last: Math.min(last ?? limit ?? DEFAULT_LAST, MAX_PAGE_MESSAGES) }
  const isOpen = since === undefined && rewindMs === undefined && limit === undefined
  return { since, rewindMs, limit, last: last ?? (isOpen ? DEFAULT_LAST : undefined) }
}
