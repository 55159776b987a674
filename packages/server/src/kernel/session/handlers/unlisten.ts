import { refusalOf } from 'webmq-client/protocol'
import type { Handler } from './handler.js'

/** Ends a listen. No message of the pattern follows the answer, unless another pattern of the connection matches it. */
export const unlisten: Handler<'unlisten'> = (session, { observer }, message) => {
  const { id, pattern } = message
  if (!session.listens.end(pattern)) throw refusalOf('E_NOT_LISTENING', { detail: pattern })
  session.reply({ verb: 'ok', id })
  observer?.unlistened?.(session, pattern)
}
