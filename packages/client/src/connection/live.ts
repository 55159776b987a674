import type { WebSocketLike } from '../client-options.js'
import type { ServerMessage, Welcome } from '../protocol/messages.js'
import type { Heartbeat } from './heartbeat.js'

/** One WebSocket: what was said on it. */
export interface Live {
  readonly socket: WebSocketLike
  readonly token: string | undefined
  heartbeat?: Heartbeat
  welcome?: Welcome
  bye?: Extract<ServerMessage, { verb: 'bye' }>
  /** Absent until `auth` was answered. */
  authResult?: unknown
  /** Authenticated: it may send anything. */
  isLive?: boolean
}
