import type { GapReason, WebMQError } from '../protocol/index.js'

/**
 * `idle`: nothing was asked of the client yet. `connecting`: the first attempt. `connected`: authenticated and live.
 * `reconnecting`: waiting for, or in, another attempt. `closed`: for good.
 */
export type State = 'idle' | 'connecting' | 'connected' | 'reconnecting' | 'closed'

/** A change of the client's state, or another failed attempt within `reconnecting`. */
export interface StateChange {
  readonly state: State
  readonly previous: State
  /** WebSocket close code of the connection that was lost (RFC 6455 §7.4); 4000-4999 are WebMQ's. */
  readonly code?: number | undefined
  /** Why, in words for a log. */
  readonly reason?: string | undefined
  /** Number of the coming attempt since the last lasting connection, from 1. */
  readonly attempt?: number | undefined
  /** Time until that attempt. */
  readonly retryInMs?: number | undefined
  /** Whether the client has given up. */
  readonly terminal?: boolean | undefined
  /** What ended the connection, as an error. */
  readonly error?: WebMQError | undefined
}

/** A connection that has just become live. */
export interface ConnectedInfo {
  /** Id that the server gave to this connection, as in its logs. */
  readonly session: string
  readonly node: string
  readonly version: string
  /** Whose token was accepted. */
  readonly userId?: string | undefined
}

/** Messages of a pattern may be missing: what the app derived from them should be loaded again. */
export interface Gap {
  readonly pattern: string
  readonly reason: GapReason
  /** Position that the server was asked to continue from. */
  readonly since?: string | undefined
}

/** Something went wrong that no promise could tell: a handler threw, a message was unreadable, a listen was refused. */
export interface ClientError {
  readonly error: unknown
  readonly pattern?: string | undefined
  readonly key?: string | undefined
}

/** Events of a client and what their handlers get. */
export interface ClientEvents {
  state: StateChange
  /** Every time a connection becomes live. Listens and queued messages have been handed to it already. */
  connected: ConnectedInfo
  /** A live connection was lost; {@link StateChange.retryInMs} says when the next attempt is made. */
  disconnected: StateChange
  /** Another attempt has been scheduled. */
  reconnecting: StateChange
  /** `connected`, but not the first time. */
  reconnected: ConnectedInfo
  /** Not connected for `lostAfterMs`: time to tell the person in front of the screen. */
  lost: { readonly afterMs: number }
  /** Connected again after `lost`. */
  restored: ConnectedInfo
  gap: Gap
  /** Goes to `console.error` when nobody handles it. */
  error: ClientError
}
