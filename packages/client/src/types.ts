/// <reference lib="esnext.disposable" preserve="true" />
import type { GapReason, WebMQError } from './protocol/index.js'

/** A value, or a promise of it. */
export type Awaitable<T> = T | PromiseLike<T>

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

/** A message as a handler gets it. One object is shared by all handlers of the client: treat it as read-only. */
export interface Message<P> {
  readonly key: string
  readonly payload: P
  /** Place in the broker's log, opaque; absent when the broker keeps none. */
  readonly position?: string | undefined
  /** Whether it comes from the log rather than live. */
  readonly replayed: boolean
}

/** What the server said to a listen. */
export interface ListenResult {
  /** Whether everything since the last known position is being replayed. */
  readonly recovered: boolean
  /** Number of messages that are being replayed. */
  readonly replayed: number
  /** Where live messages begin; absent when the broker keeps no log. */
  readonly position?: string | undefined
  /** Why messages may be missing. Never together with `recovered`. */
  readonly gap?: GapReason | undefined
}

/** What an async iterator does with a message when its buffer is full. */
export type Overflow = 'close' | 'drop-oldest' | 'drop-newest'

/** Options of `listen`. */
export interface ListenOptions {
  /** Ends the listen when aborted; iteration then ends without an error. */
  readonly signal?: AbortSignal
  /** Begin after this position, as given by `message.position` or `ready`. Not together with `last`. */
  readonly since?: string | undefined
  /** Begin with the last so many matching messages of the broker's log. Not together with `since`. */
  readonly last?: number
  /** Messages that wait for `for await`; default 16,384. Bounds memory when the loop is slower than the messages. */
  readonly bufferMaxMessages?: number
  /** Default `close`: the loop throws `E_BUFFER_OVERFLOW` rather than miss messages silently. */
  readonly overflow?: Overflow
}

/** Handles one message; what it throws, or rejects with, goes to the `error` event. */
export type MessageHandler<P> = (payload: P, message: Message<P>) => unknown

/** Events of a subscription and what their handlers get. */
export interface SubscriptionEvents {
  /** The server has accepted the listen: once per connection. */
  ready: ListenResult
  gap: Gap
  /** The listen was refused, or the iterator's buffer has overflowed. */
  error: WebMQError
  closed: undefined
}

/** A handler, or an iterator, that gets the messages of a pattern until it is disposed of. */
export interface Subscription<P> extends AsyncIterable<Message<P>>, Disposable {
  readonly pattern: string
  /** `pending` until the server has accepted the listen, and again while reconnecting. */
  readonly state: 'pending' | 'active' | 'closed'
  /**
   * Resolves when the server has accepted the listen, on the present or the coming connection: after a reconnect it is
   * another promise. Rejects when the listen is refused or ends before; a rejection that nobody looks at is no crash.
   */
  readonly ready: Promise<ListenResult>
  /** Messages that `overflow` has dropped. */
  readonly droppedCount: number
  on<E extends keyof SubscriptionEvents>(event: E, handler: (event: SubscriptionEvents[E]) => unknown): () => void
  /** No message is handled after the call; resolves when the server has confirmed it or the connection is gone. */
  unlisten(): Promise<void>
  /** Messages as they come, each to one reader. Leaving the loop ends the listen. */
  [Symbol.asyncIterator](): AsyncIterator<Message<P>, undefined>
}

/** What happens to a publish while there is no connection. */
export type WhenOffline = 'queue' | 'reject' | 'drop'

/** Options of `publish`. */
export interface PublishOptions {
  /** 1-64 characters of `[A-Za-z0-9_-]`; default: generated. The server ignores a second message of the same id. */
  readonly id?: string
  /** `broker` (default): resolve when the broker has the message. `none`: resolve when it is handed to the socket. */
  readonly ack?: 'broker' | 'none'
  /** `false`: this client's own listeners do not get the message. Default `true`. */
  readonly echo?: boolean
  /** Time to wait for the acknowledgement once sent; default `ackTimeoutMs` of the client. */
  readonly timeoutMs?: number
  /** Default: `whenOffline` of the client. */
  readonly whenOffline?: WhenOffline
  /** Stops waiting, with `E_ABORTED`; what was already sent may still be delivered. */
  readonly signal?: AbortSignal
}

/** What became of a message. */
export interface PublishResult {
  /** The message's id: publish again with it, and the server de-duplicates. */
  readonly id: string
  /** Whether the server had the message already, from an attempt whose answer was lost. */
  readonly duplicate: boolean
  readonly position?: string | undefined
  /** Whether it was given up because there was no connection (`whenOffline: 'drop'`). */
  readonly dropped?: boolean | undefined
}

/**
 * Gives a token. `initial`: before a connection is made. `expiring`: the present one is about to run out, or has.
 * `rejected`: the server refused the last one; a second refusal ends the client.
 */
export type TokenSource = (request: {
  readonly cause: TokenCause
  /** Aborted when the answer is no longer wanted. */
  readonly signal: AbortSignal
}) => Awaitable<string | null | undefined>

/** Why a token is asked for. */
export type TokenCause = 'initial' | 'expiring' | 'rejected'

/** Another format than JSON for payloads, carried in binary frames. */
export interface Codec {
  encode(payload: unknown): Uint8Array
  decode(bytes: Uint8Array): unknown
}

/** When a lost connection is tried again: after a random time below `minMs * 2 ** attempt`, at most `maxMs`. */
export interface ReconnectOptions {
  /** Default 500. */
  readonly minMs?: number
  /** Default 20,000. Bounds both the wait and the load on a server that comes back. */
  readonly maxMs?: number
  /** Attempts in a row that may fail before the client closes; default infinite. */
  readonly maxAttempts?: number
}

/** Bounds of what waits for a connection; whatever exceeds them rejects. */
export interface OfflineQueueOptions {
  /** Default 1,000; over it `E_QUEUE_FULL`. */
  readonly maxMessages?: number
  /** Payload bytes; default 1,048,576; over it `E_QUEUE_FULL`. */
  readonly maxBytes?: number
  /** Default 60,000; over it `E_TIMEOUT`. */
  readonly maxAgeMs?: number
}

/**
 * The part of a WebSocket that the client uses: browsers, Node 22, Deno, Bun, Workers and the `ws` package have it. Their
 * declarations agree on names and not on parameters, hence `never`: whatever they declare fits.
 */
export interface WebSocketLike {
  binaryType: string
  readonly bufferedAmount: number
  onopen: ((event: never) => void) | null
  onmessage: ((event: never) => void) | null
  onerror: ((event: never) => void) | null
  onclose: ((event: never) => void) | null
  send(data: never): void
  close(code?: number, reason?: string): void
}

/** Makes a WebSocket. */
export type WebSocketConstructor = new (url: string, protocols: string[]) => WebSocketLike

/** Options of a client. */
export interface ClientOptions {
  /** `ws(s)://`, `http(s)://`, or a path on the page's own origin; a function is asked before every attempt. */
  readonly url: string | URL | (() => Awaitable<string | URL>)
  /** Sent as the first message, never in the URL. A function is asked before every connection, so it may refresh. */
  readonly token?: string | TokenSource
  /** Default: JSON in text frames; bytes as they are in binary frames. */
  readonly codec?: Codec
  readonly reconnect?: ReconnectOptions
  /** Default `queue`. */
  readonly whenOffline?: WhenOffline
  readonly offlineQueue?: OfflineQueueOptions
  /** From asking for a token to being live; default 10,000. */
  readonly connectTimeoutMs?: number
  /** For answers to publish and listen; default 10,000. */
  readonly ackTimeoutMs?: number
  /** For an answer to a heartbeat `ping`; default 10,000. The interval is the server's. */
  readonly heartbeatTimeoutMs?: number
  /** Time without a connection until `lost`; default 5,000. */
  readonly lostAfterMs?: number
  /** Default: the runtime's own. Node 20 has none: `import { WebSocket } from 'ws'`. */
  readonly WebSocket?: WebSocketConstructor
  /** A number in [0, 1) to spread reconnects; default `Math.random`. */
  readonly random?: () => number
}
