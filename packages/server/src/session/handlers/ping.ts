import type { Handler } from './handler.js'

/** Shows that the server is there [P-9.1], and how far the connection has been sent what is live [P-9.7]. */
export const ping: Handler<'ping'> = (context) => {
  const { livePosition: position } = context
  context.reply({ verb: 'pong', ...(position === undefined ? undefined : { position }) })
}
