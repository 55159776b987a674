import type { ClientMessage, ClientVerb } from 'webmq-client/protocol'
import type { SessionServices } from '../services.js'
import type { Session } from '../session.js'

export type MessageOf<V extends ClientVerb> = Extract<ClientMessage, { verb: V }>

/**
 * Answers one message. Throws, or rejects with, a WebMQError to refuse it; any other error is a bug. A handler that has
 * waited MUST check `session.isClosed`, and MUST NOT answer when it is set.
 * Which later messages of the connection wait until a returned promise settles is decided by its `Inbox`.
 */
export type Handler<V extends ClientVerb> = (
  session: Session,
  services: SessionServices,
  message: MessageOf<V>,
  isBinary: boolean,
) => void | Promise<void>
