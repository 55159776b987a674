import { refusalOf } from 'webmq-client/protocol'
import type { Listens } from '../../routing/listens.js'
import type { Handler, HandlerContext } from './handler.js'

/** What `unlisten` may use. */
export interface UnlistenContext extends HandlerContext {
  readonly listens: Pick<Listens, 'end'>
  /** A listen has ended. */
  unlistened(pattern: string): void
}

/** Ends a listen. No message of the pattern follows the answer, unless another pattern of the connection matches it. */
export const unlisten: Handler<'unlisten', UnlistenContext> = (context, { id, pattern }) => {
  if (!context.listens.end(pattern)) throw refusalOf('E_NOT_LISTENING', { detail: pattern })
  context.reply({ verb: 'ok', id })
  context.unlistened(pattern)
}
