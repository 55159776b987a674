import type { ClientMessage, ClientVerb, TextServerMessage } from 'webmq-client/protocol'
import type { Identity, TokenVerifier } from '../../identity/index.js'
import type { Broker, InboundMessage, Position } from '../../ports/broker.js'
import type { ConnectionId } from '../../ports/transport.js'
import type { Attendance, Presence } from '../../presence/index.js'
import type { Listens } from '../../routing/listens.js'

/** The message of one verb. */
export type MessageOf<V extends ClientVerb> = Extract<ClientMessage, { verb: V }>

/** What a handler may touch: its own session, and of the node only this. */
export interface HandlerContext {
  readonly connection: ConnectionId
  /** Whether the session has ended; a handler that has waited must look, and then say nothing. */
  readonly isClosed: boolean
  readonly limits: HandlerLimits
  /** What this connection has waiting for the broker. */
  pendingBytes: number
  readonly broker: Pick<Broker, 'capabilities' | 'publish' | 'read' | 'position'>
  readonly listens: Listens
  readonly presence: Pick<Presence, 'whenComplete' | 'membersJson'>
  /** Where this connection is present, and which keys it watches. */
  readonly attendance: Attendance
  /** Who the session belongs to; `undefined` for the anonymous. */
  readonly userId: string | undefined
  /** Absent when the server takes everyone. */
  readonly verifier: TokenVerifier | undefined
  mayListen(pattern: string): boolean
  mayPublish(key: string): boolean
  reply(message: TextServerMessage): void
  /** The same for what is encoded already. */
  replyText(text: string): void
  /** The option `position` of an `ok` from which on this connection is sent messages; `undefined` says that there is none. */
  givePosition(position: Position | undefined): { readonly position?: string }
  /** Up to here, everything live that this connection listens to has been sent; `undefined` when that cannot be said. */
  readonly livePosition: string | undefined
  /** Sends a message of the log. */
  replay(message: InboundMessage): void
  /**
   * Resolves when this connection may be replayed a page; at once when that is now.
   * @param since From which it is asked for: what was sent up to there has been read.
   */
  replayTurn(since: string | undefined): void | Promise<void>
  /** Takes bytes of what may be replayed to this connection now; `false` when it has had enough, unless forced. */
  takeReplayBytes(byteCount: number, isForced: boolean): boolean
  /** What was taken is a page. @param next Position from which the client will ask for more; absent: there is no more. */
  endReplayPage(next: string | undefined): void
  /**
   * Goes on as this identity.
   * @throws {WebMQError} `E_FORBIDDEN` when the session belongs to another user.
   */
  authenticate(identity: Identity): void
  /** Time until the token of the session expires; `undefined` when it does not. */
  expiresInMs(): number | undefined
  /** Ends the listens and the presence that the present identity may no longer have, and says so. */
  revokeListens(): void
  /** Answers a token that was not accepted; ends the session, unless the token it has is still good. */
  refuseToken(error: unknown, id: string | undefined): void
}

/** Limits that handlers enforce. */
export interface HandlerLimits {
  readonly maxPayloadBytes: number
  readonly maxListensPerConnection: number
  /** What a connection may have waiting for the broker: one alone must not use up what there is for all. */
  readonly maxPendingBytes: number
}

/**
 * Answers one message. Throws, or rejects with, a WebMQError to refuse it; anything else is a bug.
 * Until a returned promise settles, later messages of the connection wait, those of `publish` and `ping` excepted.
 */
export type Handler<V extends ClientVerb> = (
  context: HandlerContext,
  message: MessageOf<V>,
  isBinary: boolean,
) => void | Promise<void>
