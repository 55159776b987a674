import { WebMQError } from 'webmq-client/protocol'
import type { Handler } from './handler.js'

/** Ends a listen: no message of the pattern comes after the answer, unless another pattern matches it. */
export const unlisten: Handler<'unlisten'> = (context, { id, pattern }) => {
  if (!context.listens.end(pattern)) throw new WebMQError('E_NOT_LISTENING', { detail: pattern })
  context.reply({ verb: 'ok', id })
}
