import { WebMQError } from 'webmq-client/protocol'
import { andThen, isPromise, type MaybePromise } from '../../ports/maybe-promise.js'
import { isRangeAsked, limitReplay, type Replay, readLog, withCaptured } from '../../replay/replay.js'
import type { ListenOpening } from '../../routing/listens.js'
import type { Handler, HandlerContext, MessageOf } from './handler.js'

/**
 * Begins to listen. On the connection come, in this order and without anything of this pattern missing or twice: the
 * answer, what is replayed, live messages. A replay of several pages comes a page per request; only with the last the listen is live.
 */
export const listen: Handler<'listen'> = (context, message) => {
  assertAllowed(context, message)
  if (!isRangeAsked(message)) return begin(context, message, undefined)
  return andThen(context.replayTurn(message.since), () => {
    const first = readLog(context.broker, message, message.pattern)
    return andThen(first, (page) => {
      // What came while the broker was asked is not in the last page.
      if (!page.hasMore) return begin(context, message, isPromise(first) ? undefined : page)
      if (!context.isClosed) answer(context, message, page)
    })
  })
}

function assertAllowed(context: HandlerContext, { pattern, group }: MessageOf<'listen'>): void {
  const { listens, limits, broker } = context
  if (group !== undefined && !broker.capabilities.queueGroups) {
    throw new WebMQError('E_UNSUPPORTED', { detail: 'queue groups' })
  }
  if (!context.mayListen(pattern)) throw new WebMQError('E_FORBIDDEN', { detail: `listen ${pattern}` })
  if (!listens.has(pattern) && listens.size >= limits.maxListensPerConnection) {
    throw new WebMQError('E_LISTEN_LIMIT', { detail: `at most ${limits.maxListensPerConnection}` })
  }
}

/** @param page What was read in this turn, if it was. */
function begin(context: HandlerContext, message: MessageOf<'listen'>, page: Replay | undefined): MaybePromise<void> {
  const { pattern } = message
  const opening = context.listens.open(pattern)
  const fail = (error: unknown): never => {
    opening.abort()
    throw error
  }
  try {
    const log = andThen(opening.bound, () => {
      // What was missed before the pattern was live was not promised to anyone.
      opening.capture.gap = undefined
      return page !== undefined && !isPromise(opening.bound) ? page : readLog(context.broker, message, pattern)
    })
    // With a broker that answers at once, all this happens before any other message is looked at.
    if (isPromise(log)) return log.then((log) => goLive(context, message, opening, log)).catch(fail)
    goLive(context, message, opening, log)
  } catch (error) {
    fail(error)
  }
}

function goLive(context: HandlerContext, message: MessageOf<'listen'>, opening: ListenOpening, log: Replay): void {
  if (context.isClosed) {
    opening.abort()
    return
  }
  const { capture } = opening
  const replay = withCaptured(log, capture, isRangeAsked(message))
  const gap = replay.gap ?? capture.gap
  const isLive = answer(context, message, gap === undefined ? replay : { ...replay, gap })
  if (isLive) opening.commit()
  else opening.abort()
}

/** Sends a page; returns whether it was the last. */
function answer(context: HandlerContext, message: MessageOf<'listen'>, replay: Replay): boolean {
  const { messages, position, gap, hasMore } = limitReplay(replay, (bytes, isForced) =>
    context.takeReplayBytes(bytes, isForced),
  )
  const given = context.givePosition(position)
  context.endReplayPage(hasMore ? given.position : undefined)
  context.reply({
    verb: 'ok',
    id: message.id,
    ...given,
    ...(message.since !== undefined && gap === undefined ? { recovered: true } : undefined),
    ...(gap === undefined ? undefined : { gap }),
    ...(isRangeAsked(message) ? { replayed: messages.length } : undefined),
    ...(hasMore ? { more: true } : undefined),
  })
  for (const replayed of messages) context.replay(replayed)
  return !hasMore
}
