/** A value, or a promise of it. */
export type Awaitable<T> = T | PromiseLike<T>

/** Behaviour of `publish` without a connection. */
export type WhenOffline = 'queue' | 'reject' | 'drop'

/** Returns a token, or `null` for an anonymous connection. Without either, the client asks again later. */
export type TokenSource = (request: {
  readonly cause: TokenCause
  /** Aborted when the token is no longer needed. */
  readonly signal: AbortSignal
}) => Awaitable<string | null>

/**
 * Why the client asks for a token.
 *
 * `initial`: before a connection. `expiring`: the present token expires soon, or has expired. `rejected`: the server
 * has refused the last token; a second refusal ends the client.
 */
export type TokenCause = 'initial' | 'expiring' | 'rejected'

/**
 * A payload format other than JSON, carried in binary frames. Text frames are always JSON, so messages of clients
 * without a codec remain readable.
 */
export interface Codec {
  /**
   * Called once per publish, before `publish` returns. If it throws, the publish rejects with `E_PAYLOAD_INVALID`.
   * @returns Bytes, which the client keeps until the publish has settled: do not reuse the buffer. Or a text: JSON.
   */
  encode(payload: unknown): Uint8Array | string
  /**
   * Called for each binary message that has a listener. If it throws, the `error` event gets `E_PAYLOAD_INVALID`.
   * @param bytes Part of a larger buffer that is never reused; you may keep it, and views of it.
   */
  decode(bytes: Uint8Array): unknown
  /** Called for each message that is text; default `JSON.parse`, which rounds numbers beyond 2^53. */
  parse?(text: string): unknown
}

/**
 * How a lost connection is retried: after a random time below `minMs * 2 ** attempt`, at most `maxMs`, and before the
 * first 24 attempts at most 5 s, or `minMs` if that is more.
 */
export interface ReconnectOptions {
  /** Default 500. */
  readonly minMs?: number
  /** Default 20,000. Limits both the wait and the load on a server that has restarted. */
  readonly maxMs?: number
  /** Failed attempts in a row before the client closes; default infinite. Page events and `connect()` count anew. */
  readonly maxAttempts?: number
}

/** Limits of the messages that wait for a connection. Beyond them, `publish` rejects. */
export interface OfflineQueueOptions {
  /** Default 1,000; beyond it `E_QUEUE_FULL`. */
  readonly maxMessages?: number
  /** Payload bytes; default 1,048,576; beyond it `E_QUEUE_FULL`. */
  readonly maxBytes?: number
  /** Default 60,000; beyond it `E_TIMEOUT`. */
  readonly maxAgeMs?: number
}

/**
 * The part of a WebSocket that the client uses. Browsers, Node 22, Deno, Bun, Workers and the `ws` package have it.
 * Their declarations agree on names but not on parameters; `never` fits all of them.
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

/** Constructor of a WebSocket. */
export type WebSocketConstructor = new (url: string, protocols: string[]) => WebSocketLike

/** Positions that survive a reload; see `savedPositions` of `webmq-client/parts`. */
export interface Positions {
  /** Position at which the previous page stopped. */
  get(pattern: string): string | undefined
  /** A position has moved. Called for every message. */
  touch(): void
  /** The app has ended its last subscription of the pattern. */
  forget(pattern: string): void
  /** The client is closed. */
  close(): void
}

/** What {@link Positions} may know of their client. */
export interface ResumeContext {
  /** The client's URL; `''` if that is a function. */
  readonly name: string
  /** For each subscription its pattern and the position up to which everything was handled, if that is known. */
  collect(): Iterable<readonly [pattern: string, handled: string | undefined]>
  onError(error: unknown): void
}

/** Makes the {@link Positions} of a client. */
export type Resume = (context: ResumeContext) => Positions

/** Adds a listener that ends with a signal. */
type AddListener = (
  type: string,
  listener: (event: Event) => unknown,
  options: { readonly signal: AbortSignal },
) => void

/**
 * Tells that the page or app is hidden, and that the network is away or another one: the used part of `window`. All of it
 * may be missing, as in Node or Workers. It is read when the client makes an attempt.
 */
export interface Lifecycle {
  /** `online`, `offline` and `pageshow`. */
  readonly addEventListener?: AddListener | undefined
  /** `visibilitychange` and `resume`. */
  readonly document?:
    | { readonly addEventListener?: AddListener | undefined; readonly visibilityState?: string | undefined }
    | undefined
  readonly navigator?: { readonly onLine?: boolean | undefined } | undefined
}

/** Options of a client. */
export interface ClientOptions {
  /** `ws(s)://`, `http(s)://`, or a path on the page's own origin. A function is called before every attempt. */
  readonly url: string | URL | (() => Awaitable<string | URL>)
  /** Sent as the first message, never in the URL. A function is called before every connection, so it may refresh. */
  readonly token?: string | TokenSource
  /** Default: none. Bytes travel unchanged in binary frames, everything else as JSON in text frames. */
  readonly codec?: Codec
  readonly reconnect?: ReconnectOptions
  /** Default `queue`. */
  readonly whenOffline?: WhenOffline
  readonly offlineQueue?: OfflineQueueOptions
  /** Continues listens after a reload of the page: `savedPositions()` of `webmq-client/parts`. Default: does not. */
  readonly resume?: Resume | undefined
  /** From the request for a token to the live connection; default 10,000. */
  readonly connectTimeoutMs?: number
  /** For answers to publish and listen; default 10,000. */
  readonly ackTimeoutMs?: number
  /** For an answer to a heartbeat `ping`; default 10,000. The interval is the server's. */
  readonly heartbeatTimeoutMs?: number
  /** Time without a connection until the event `lost`; default 5,000. */
  readonly lostAfterMs?: number
  /** Default: the runtime's own. Node 20 has none: `import { WebSocket } from 'ws'`. */
  readonly WebSocket?: WebSocketConstructor | undefined
  /** Default: that of the page. For React Native `appLifecycle` of `webmq-client/native`. */
  readonly lifecycle?: Lifecycle | undefined
  /** A number in [0, 1) to spread reconnects; default `Math.random`. */
  readonly random?: () => number
}
