import type { ErrorCode, WebMQError } from '../protocol/errors.js'
import type { GapReason, SessionLimits } from '../protocol/messages.js'

/**
 * `idle`: not used yet. `connecting`: the first attempt. `connected`: authenticated and live. `reconnecting`: waiting
 * for, or in, another attempt. `closed`: until `open()`.
 */
export type State = 'idle' | 'connecting' | 'connected' | 'reconnecting' | 'closed'

/** A change of the client's state, or another failed attempt within `reconnecting`. */
export interface StateChange {
  readonly state: State
  readonly previous: State
  /** WebSocket close code of the lost connection (RFC 6455 §7.4); 4000-4999 are WebMQ's. */
  readonly code?: number | undefined
  /** The reason as text, for a log. */
  readonly reason?: string | undefined
  /** Number of the next attempt since the last lasting connection, from 1. */
  readonly attempt?: number | undefined
  /** Time until that attempt. */
  readonly retryInMs?: number | undefined
  /** Whether the client has given up. */
  readonly terminal?: boolean | undefined
  /** The error that ended the connection. */
  readonly error?: WebMQError | undefined
}

/** The present state of a client, for display. Frozen, and the same object until something changes. */
export interface ClientStatus {
  readonly state: State
  /** While `reconnecting`: as in {@link StateChange}. */
  readonly attempt?: number | undefined
  readonly retryInMs?: number | undefined
  /** Whether there has been no connection for `lostAfterMs`. */
  readonly lost: boolean
  /** Number of publishes that wait for a connection. */
  readonly queueLength: number
  /** Limits of the server; those of the last connection while there is none. */
  readonly limits?: Readonly<SessionLimits> | undefined
  /** The last problem of the connection or of its token since it was live. */
  readonly lastError?: { readonly code: ErrorCode; readonly message: string } | undefined
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
  state: StateChange
  /** A connection is live. Listens and waiting messages were already sent on it. */
  connected: ConnectedInfo
  /** A live connection was lost; {@link StateChange.retryInMs} is the time until the next attempt. */
  disconnected: StateChange
  /** Another attempt has been scheduled. */
  reconnecting: StateChange
  /** `connected`, except the first time. */
  reconnected: ConnectedInfo
  /** No connection for `lostAfterMs`: time to tell the user. */
  lost: { readonly afterMs: number }
  /** `connected`, after `lost`. */
  restored: ConnectedInfo
  gap: Gap
  /** Goes to `console.error` if there is no handler. */
  error: ClientError
}
