import { WebMQError } from 'webmq-client/protocol'
import type { Handler } from './handler.js'

/** Reserved: refused for now. */
export const presence: Handler<'presence'> = () => {
  throw new WebMQError('E_UNSUPPORTED', { detail: 'presence' })
}
