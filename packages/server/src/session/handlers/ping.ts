import type { Handler, HandlerContext } from './handler.js'

/** What `ping` may use. */
export interface PingContext extends HandlerContext {
  /** All live messages up to here have been sent to this connection; `undefined` when that is not known. */
  readonly livePosition: string | undefined
}

/** Shows that the server is alive [P-9.1], and up to which position live messages have been sent [P-9.7]. */
export const ping: Handler<'ping', PingContext> = (context) => {
  const { livePosition: position } = context
  context.reply({ verb: 'pong', ...(position === undefined ? undefined : { position }) })
}
