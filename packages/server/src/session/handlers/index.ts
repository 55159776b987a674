import type { ClientVerb } from 'webmq-client/protocol'
import { type AuthContext, auth } from './auth.js'
import type { Handler } from './handler.js'
import { type HistoryContext, history } from './history.js'
import { type ListenContext, listen } from './listen.js'
import { type PingContext, ping } from './ping.js'
import { type PresenceHandlerContext, presence } from './presence.js'
import { type PublishContext, publish } from './publish.js'
import { type ReplyContext, type RequestContext, reply, request } from './request.js'
import { type SendOnContext, sendingOn } from './sending-on.js'
import { type UnlistenContext, unlisten } from './unlisten.js'

/** What a session gives to the handlers; each sees only its own part. */
export type SessionContext = AuthContext &
  ListenContext &
  SendOnContext &
  UnlistenContext &
  PublishContext &
  HistoryContext &
  RequestContext &
  ReplyContext &
  PresenceHandlerContext &
  PingContext

/** Every verb's handler; a missing verb does not compile. */
export const handlers: { readonly [V in ClientVerb]: Handler<V, SessionContext> } = {
  auth,
  listen: sendingOn<SessionContext>(listen),
  unlisten,
  publish,
  history,
  presence,
  request,
  reply,
  ping,
}
