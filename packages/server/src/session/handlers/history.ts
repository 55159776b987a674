import { WebMQError } from 'webmq-client/protocol'
import type { Broker } from '../../ports/broker.js'
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
  return replays.read(connection, () => readLog(broker, request, key), send, answer)
}

function assertGranted(context: HistoryContext, key: string): void {
  if (!context.mayListen(key)) throw new WebMQError('E_FORBIDDEN', { detail: `listen ${key}` })
}

function rangeOf({ since, rewindMs, last, limit, reverse }: MessageOf<'history'>): RangeOptions {
  if (reverse === true) return { since, rewindMs, last: Math.min(last ?? limit ?? DEFAULT_LAST, MAX_PAGE_MESSAGES) }
  const isOpen = since === undefined && rewindMs === undefined && limit === undefined
  return { since, rewindMs, limit, last: last ?? (isOpen ? DEFAULT_LAST : undefined) }
}
