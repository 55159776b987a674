import { WebMQError } from 'webmq-client/protocol'
import type { ListenOpening } from '../listens.js'
import { andThen, isPromise } from '../maybe-promise.js'
import { isRangeAsked, limitReplay, type Replay, readLog, withCaptured } from '../replay.js'
import type { Handler, HandlerContext, MessageOf } from './handler.js'

/**
 * Begins to listen. On the connection come, in this order and without anything of this pattern missing or twice: the
 * answer, what is replayed, live messages.
 */
export const listen: Handler<'listen'> = (context, message) => {
  const { pattern } = message
  assertAllowed(context, message)
  const opening = context.listens.open(pattern)
  const fail = (error: unknown): never => {
    opening.abort()
    throw error
  }
  try {
    const log = andThen(opening.bound, () => {
      // What was missed before the pattern was live was not promised to anyone.
      opening.capture.gap = undefined
      return readLog(context.broker, message, pattern)
    })
    // With a broker that answers at once, all this happens before any other message is looked at.
    if (isPromise(log)) return log.then((log) => goLive(context, message, opening, log)).catch(fail)
    goLive(context, message, opening, log)
  } catch (error) {
    fail(error)
  }
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

function goLive(context: HandlerContext, message: MessageOf<'listen'>, opening: ListenOpening, log: Replay): void {
  if (context.isClosed) {
    opening.abort()
    return
  }
  const isAsked = isRangeAsked(message)
  const replay = limitReplay(withCaptured(log, opening.capture, isAsked), (bytes) => context.takeReplayBytes(bytes))
  const { position } = replay
  const gap = replay.gap ?? opening.capture.gap
  context.reply({
    verb: 'ok',
    id: message.id,
    ...context.givePosition(position),
    ...(message.since !== undefined && gap === undefined ? { recovered: true } : undefined),
    ...(gap === undefined ? undefined : { gap }),
    ...(isAsked ? { replayed: replay.messages.length } : undefined),
  })
  for (const replayed of replay.messages) context.replay(replayed)
  opening.commit()
}
