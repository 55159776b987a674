/** A value, or a promise of it. */
export type Awaitable<T> = T | PromiseLike<T>

/** What happens to a publish while there is no connection. */
export type WhenOffline = 'queue' | 'reject' | 'drop'

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

/**
 * Another format than JSON for payloads, carried in binary frames. Text frames are JSON all the same: whoever publishes
 * without a codec is understood.
 */
export interface Codec {
  /**
   * Called once per publish, before `publish` returns. What it throws rejects the publish with `E_PAYLOAD_INVALID`.
   * @returns Kept until the publish is settled, so it must not change: no buffer that is used again.
   */
  encode(payload: unknown): Uint8Array
  /**
   * Called for each binary message that has a listener; what it throws goes to the `error` event as `E_PAYLOAD_INVALID`.
   * @param bytes A part of a larger buffer, which nobody uses again: may be kept, and views into it as well.
   */
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

/** Where positions are kept over a reload of the page: `sessionStorage`, `localStorage`, or what looks like them. */
export interface PositionStore {
  getItem(key: string): string | null
  setItem(key: string, value: string): void
  removeItem(key: string): void
}

/** Options of a client. */
export interface ClientOptions {
  /** `ws(s)://`, `http(s)://`, or a path on the page's own origin; a function is asked before every attempt. */
  readonly url: string | URL | (() => Awaitable<string | URL>)
  /** Sent as the first message, never in the URL. A function is asked before every connection, so it may refresh. */
  readonly token?: string | TokenSource
  /** Default: none. Bytes go and come as they are, in binary frames, and everything else as JSON, in text frames. */
  readonly codec?: Codec
  readonly reconnect?: ReconnectOptions
  /** Default `queue`. */
  readonly whenOffline?: WhenOffline
  readonly offlineQueue?: OfflineQueueOptions
  /**
   * Keeps positions over a reload of the page, so that a listen goes on from where the former page has stopped; `session` keeps them
   * in `sessionStorage`, by URL and pattern. Default `false`. A store that fails is told of once, as an `error` event.
   */
  readonly resume?: false | 'session' | PositionStore
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
