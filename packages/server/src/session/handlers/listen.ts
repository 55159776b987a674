import { WebMQError } from 'webmq-client/protocol'
import type { Broker } from '../../ports/broker.js'
import { andThen, isPromise, type MaybePromise } from '../../ports/maybe-promise.js'
import type { ConnectionId } from '../../ports/transport.js'
import { isRangeAsked, type Replay, readLog, withLive } from '../../replay/replay.js'
import type { ReplaySender } from '../../replay/sender.js'
import type { ListenOpening, Listens } from '../../routing/listens.js'
import type { Handler, HandlerContext, MessageOf } from './handler.js'

/** What `listen` may use. */
export interface ListenContext extends HandlerContext {
  readonly connection: ConnectionId
  readonly broker: Pick<Broker, 'capabilities' | 'read' | 'position'>
  readonly listens: Pick<Listens, 'has' | 'size' | 'open'>
  readonly replays: Pick<ReplaySender, 'turn' | 'send'>
  readonly limits: { readonly maxListensPerConnection: number }
  mayListen(pattern: string): boolean
}

/**
 * Begins to listen. The connection gets, in this order: the answer, the replayed messages, the live messages. No message
 * of the pattern is missing or comes twice. A long replay takes one request per page; the last one makes the listen live.
 */
export const listen: Handler<'listen', ListenContext> = (context, message) => {
  assertAllowed(context, message)
  if (!isRangeAsked(message)) return begin(context, message, undefined)
  return andThen(context.replays.turn(context.connection, message), () => {
    const first = readLog(context.broker, message, message.pattern)
    return andThen(first, (page) => {
      if (page.hasMore) {
        if (!context.isClosed) answer(context, message, page)
        return
      }
      // A remote broker may log more messages before the pattern is bound, so `begin` reads the last page again.
      return begin(context, message, isPromise(first) ? undefined : page)
    })
  })
}

function assertAllowed(context: ListenContext, { pattern, group }: MessageOf<'listen'>): void {
  const { listens, limits, broker } = context
  if (group !== undefined && !broker.capabilities.queueGroups) {
    throw new WebMQError('E_UNSUPPORTED', { detail: 'queue groups' })
  }
  if (!context.mayListen(pattern)) throw new WebMQError('E_FORBIDDEN', { detail: `listen ${pattern}` })
  if (!listens.has(pattern) && listens.size >= limits.maxListensPerConnection) {
    throw new WebMQError('E_LISTEN_LIMIT', { detail: `at most ${limits.maxListensPerConnection}` })
  }
}

/** @param page The last page, if it was read in this turn. */
function begin(context: ListenContext, message: MessageOf<'listen'>, page: Replay | undefined): MaybePromise<void> {
  const { pattern } = message
  const opening = context.listens.open(pattern)
  const fail = (error: unknown): never => {
    opening.abort()
    throw error
  }
  try {
    const log = andThen(opening.bound, () => {
      // A gap before the pattern was bound does not count: nobody was promised those messages.
      opening.buffer.gap = undefined
      return page !== undefined && !isPromise(opening.bound) ? page : readLog(context.broker, message, pattern)
    })
    // With a broker that answers at once, all of this happens before any other message is handled.
    if (isPromise(log)) return log.then((log) => goLive(context, message, opening, log)).catch(fail)
    goLive(context, message, opening, log)
  } catch (error) {
    fail(error)
  }
}

function goLive(context: ListenContext, message: MessageOf<'listen'>, opening: ListenOpening, log: Replay): void {
  if (context.isClosed) {
    opening.abort()
    return
  }
  const { buffer } = opening
  const replay = withLive(log, buffer, isRangeAsked(message))
  const gap = replay.gap ?? buffer.gap
  const isLast = answer(context, message, gap === undefined ? replay : { ...replay, gap })
  if (isLast) opening.commit()
  else opening.abort()
}

/** Sends a page; returns whether it was the last one. */
function answer({ connection, replays }: ListenContext, message: MessageOf<'listen'>, replay: Replay): boolean {
  const isRecovered = message.since !== undefined && replay.gap === undefined
  return replays.send(connection, message, replay, { isRecovered })
}
