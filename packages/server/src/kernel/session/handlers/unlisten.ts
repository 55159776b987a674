import { refusalOf } from 'webmq-client/protocol'
import type { Handler } from './handler.js'
import { slotNameOf } from './queue-group.js'

/** Ends a listen. No message of the pattern follows the answer, unless another pattern of the connection matches it. */
export const unlisten: Handler<'unlisten'> = (session, { observer }, message) => {
  const { id, pattern } = message
  const name = slotNameOf(message)
  const hasEnded = name === undefined ? session.listens.end(pattern) : session.ownGroups.leave(name)
  if (!hasEnded) throw refusalOf('E_NOT_LISTENING', { detail: pattern })
  session.reply({ verb: 'ok', id })
  observer?.unlistened?.(session, pattern)
}
