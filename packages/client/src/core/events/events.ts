import type { WebMQError } from '../../protocol/errors.js'
import type { GapReason, SessionLimits } from '../../protocol/messages.js'

/**
 * `idle`: not used yet. `connecting`: the first attempt. `connected`: authenticated and live. `reconnecting`: waiting
 * for, or in, another attempt. `closed`: until `open()`.
 */
export type State = 'idle' | 'connecting' | 'connected' | 'reconnecting' | 'closed'

/** The present state of a client. Frozen, and the same object until something changes. */
export interface ClientStatus {
  readonly state: State
  /** While `reconnecting`, number of the next attempt since the last lasting connection, from 1. */
  readonly attempt?: number | undefined
  /** Time until that attempt, when it was scheduled. */
  readonly retryInMs?: number | undefined
  /** While `reconnecting` or `closed`, WebSocket close code of the lost connection (RFC 6455 §7.4); 4000-4999 are WebMQ's. */
  readonly code?: number | undefined
  /** Whether there has been no connection for `lostAfterMs`: time to tell the user. */
  readonly lost: boolean
  /** Number of publishes that wait for a connection. */
  readonly queueLength: number
  /** While `connected`. Listens and waiting messages were already sent on it. */
  readonly connection?: ConnectedInfo | undefined
  /** Limits of the server; those of the last connection while there is none. */
  readonly limits?: Readonly<SessionLimits> | undefined
  /** The last problem of the connection or of its token since it was live; the error that closed the client. */
  readonly lastError?: WebMQError | undefined
}

/** A new live connection. */
export interface ConnectedInfo {
  /** Id of this connection in the server's logs. */
  readonly session: string
  readonly node: string
  readonly version: string
  /** User of the accepted token. */
  readonly userId?: string | undefined
}

/** Messages of a pattern may be missing: load again whatever you derived from them. */
export interface Gap {
  readonly pattern: string
  readonly reason: GapReason
  /** Position from which the client asked to continue. */
  readonly since?: string | undefined
}

/** An error that belongs to no promise: a handler threw, a message was unreadable, a listen was refused. */
export interface ClientError {
  readonly error: unknown
  readonly pattern?: string | undefined
  readonly key?: string | undefined
}

/** Events of a client and the arguments of their handlers. */
export interface ClientEvents {
  /**
   * Something of {@link ClientStatus} has changed. Handlers also get the status before: a connection was lost if
   * `previous.state` is `connected`, and `status.state` is not.
   */
  status: ClientStatus
  gap: Gap
  /** Goes to `console.error` if there is no handler. */
  error: ClientError
}
