import { refusalOf } from 'webmq-client/protocol'
import type { Listens } from '../../routing/listens.js'
import type { Handler, HandlerContext } from './handler.js'
import { type QueueGroupContext, slotNameOf } from './queue-group.js'

/** What `unlisten` may use. */
export interface UnlistenContext extends HandlerContext, Pick<QueueGroupContext, 'ownGroups'> {
  readonly listens: Pick<Listens, 'end'>
  /** A listen has ended. */
  unlistened(pattern: string): void
}

/** Ends a listen. No message of the pattern follows the answer, unless another pattern of the connection matches it. */
export const unlisten: Handler<'unlisten', UnlistenContext> = (context, message) => {
  const { id, pattern } = message
  const name = slotNameOf(message)
  const hasEnded = name === undefined ? context.listens.end(pattern) : context.ownGroups.leave(name)
  if (!hasEnded) throw refusalOf('E_NOT_LISTENING', { detail: pattern })
  context.reply({ verb: 'ok', id })
  context.unlistened(pattern)
}
