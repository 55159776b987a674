import type { Handler } from './handler.js'

/** Shows that the server is there [P-9]. */
export const ping: Handler<'ping'> = (context) => context.reply({ verb: 'pong' })
