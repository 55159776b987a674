import { WebMQError } from 'webmq-client/protocol'
import { andThen } from '../maybe-promise.js'
import { limitReplay, type Replay, readLog } from '../replay.js'
import type { Handler, HandlerContext } from './handler.js'

/** What a request without `since` and `last` gets. */
const DEFAULT_LAST = 100

/** Sends messages of a key from the log, right after the answer that says how many; nothing comes in between. */
export const history: Handler<'history'> = (context, message) => {
  const { id, key, since, last = DEFAULT_LAST } = message
  if (!context.broker.capabilities.history) throw new WebMQError('E_UNSUPPORTED', { detail: 'history' })
  if (!context.mayListen(key)) throw new WebMQError('E_FORBIDDEN', { detail: `listen ${key}` })
  return andThen(readLog(context.broker, since === undefined ? { last } : { since }, key), (log) =>
    answer(context, id, log),
  )
}

function answer(context: HandlerContext, id: string, log: Replay): void {
  if (context.isClosed) return
  const { messages, position, gap } = limitReplay(log, (bytes) => context.takeReplayBytes(bytes))
  context.reply({
    verb: 'ok',
    id,
    ...context.givePosition(position),
    ...(gap === undefined ? undefined : { gap }),
    replayed: messages.length,
  })
  for (const message of messages) context.replay(message)
}
