import { WebMQError } from 'webmq-client/protocol'
import { andThen } from '../../ports/maybe-promise.js'
import {
  limitNewest,
  limitReplay,
  MAX_PAGE_MESSAGES,
  type RangeOptions,
  type Replay,
  readLog,
} from '../../replay/replay.js'
import type { Handler, HandlerContext, MessageOf } from './handler.js'

/** What a request that does not say how much, nor since when, gets. */
const DEFAULT_LAST = 100

/** Sends messages of a key from the log, right after the answer that says how many; nothing comes in between. */
export const history: Handler<'history'> = (context, message) => {
  const { key } = message
  if (!context.broker.capabilities.history) throw new WebMQError('E_UNSUPPORTED', { detail: 'history' })
  if (!context.mayListen(key)) throw new WebMQError('E_FORBIDDEN', { detail: `listen ${key}` })
  return andThen(context.replayTurn(message.since), () =>
    andThen(readLog(context.broker, rangeOf(message), key), (log) => answer(context, message, log)),
  )
}

function rangeOf({ since, rewindMs, last, limit, reverse }: MessageOf<'history'>): RangeOptions {
  if (reverse === true) return { since, rewindMs, last: Math.min(last ?? limit ?? DEFAULT_LAST, MAX_PAGE_MESSAGES) }
  const isOpen = since === undefined && rewindMs === undefined && limit === undefined
  return { since, rewindMs, limit, last: last ?? (isOpen ? DEFAULT_LAST : undefined) }
}

function answer(context: HandlerContext, { id, reverse }: MessageOf<'history'>, log: Replay): void {
  if (context.isClosed) return
  const limit = reverse === true ? limitNewest : limitReplay
  const { messages, position, gap, hasMore } = limit(log, (bytes, isForced) => context.takeReplayBytes(bytes, isForced))
  const given = context.givePosition(position)
  context.endReplayPage(hasMore ? given.position : undefined)
  context.reply({
    verb: 'ok',
    id,
    ...given,
    ...(gap === undefined ? undefined : { gap }),
    replayed: messages.length,
    ...(hasMore ? { more: true } : undefined),
  })
  for (const message of reverse === true ? messages.toReversed() : messages) context.replay(message)
}
