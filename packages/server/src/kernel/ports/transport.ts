import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { MessageRun } from './message-run.js'
import type { TlsCertificate } from './transport-options.js'

declare const brand: unique symbol

/** Names one accepted WebSocket or event stream for its whole life; never reused while the transport runs. A safe integer, opaque to callers. */
export type ConnectionId = number & { readonly [brand]: 'connection' }
/** Names a group, chosen by the caller: an integer from 0 to 2^32 - 1. A group exists while it has members. */
export type GroupId = number & { readonly [brand]: 'group' }
/** Names an upgrade request that waits for `accept` or `reject`. A safe integer, opaque to callers. */
export type UpgradeId = number & { readonly [brand]: 'upgrade' }

/** A message that writes itself into the transport's memory, which saves a copy. Used only within the call that gets it. */
export interface FrameSource {
  readonly byteLength: number
  /** Writes `byteLength` bytes into `target` from `start` on. */
  writeTo(target: Uint8Array, start: number): void
}

/** One message: text as a string, or bytes. */
export type FrameData = string | Uint8Array | FrameSource

/** Output that waits for one connection: none, or at most a quarter of `maxOutboxBytes`. */
export type OutboxLevel = 'empty' | 'low'

/**
 * What members of a group get when they lag: the newest messages (`drop-oldest`), or the newest message of each topic
 * (`latest`).
 */
export interface GroupOverflow {
  readonly policy: 'drop-oldest' | 'latest'
  /** Text that a member gets in the place of messages that are left out. */
  readonly notice?: string
}

/** What a transport can do beside the port; each flag is asserted by the conformance suite. */
export interface TransportCapabilities {
  /** Terminates TLS by itself. */
  readonly tls: boolean
  /** Takes other certificates while it runs, see {@link Transport.setCertificates}. */
  readonly tlsReload: boolean
  /** Takes upgrades of an existing Node `http` server. */
  readonly attach: boolean
  /** Several I/O threads. */
  readonly threads: boolean
  /** Negotiates permessage-deflate (RFC 7692) when the options say so. */
  readonly compression: boolean
  /** `pause` stops reading from a socket. */
  readonly pause: boolean
  /** Serves event streams (SSE), see `TransportOptions.ssePath`. */
  readonly sse: boolean
  /** Reads headers of the PROXY protocol, see `TransportOptions.proxyProtocolFrom`. */
  readonly proxyProtocol: boolean
  /** Leaves messages out for members that lag, see {@link Transport.setOverflow}. */
  readonly overflow: boolean
  /** Listens on a Unix socket, see `TransportOptions.host`. */
  readonly unixSocket: boolean
  /** Gives prepared answers, see {@link Transport.prepareAnswer}. */
  readonly answers: boolean
}

/** What an upgrade request asks for. */
export type UpgradeKind = 'websocket' | 'sse'

/** An upgrade request as it arrived, or a request for an event stream. */
export interface UpgradeRequest {
  readonly id: UpgradeId
  readonly kind: UpgradeKind
  /** Path without the query, as sent (not percent-decoded). */
  readonly path: string
  /** Query without `?`, as sent; empty when absent. */
  readonly query: string
  /** All headers as {@link header} gives them; put together when it is asked for. */
  readonly headers: Readonly<Record<string, string>>
  /**
   * One header. The values of a repeated one are joined with `, ` (`cookie` with `; `), RFC 9110 §5.3.
   * @param name In lower case.
   */
  header(name: string): string | undefined
  /** Values of `sec-websocket-protocol`, in order. */
  readonly subprotocols: readonly string[]
  /** Of the peer, or {@link UNIX_PEER}. */
  readonly remoteAddress: string
  readonly remotePort: number
}

/** How an accepted upgrade is answered. */
export interface AcceptOptions {
  /** Only for a WebSocket. */
  readonly subprotocol?: string
  /** Added to the response. Names and values must be valid header text. */
  readonly headers?: Readonly<Record<string, string>>
}

/** How a refused upgrade is answered. */
export interface Rejection {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/**
 * What a transport tells its owner. Calls come on the event loop, never from inside a call into the transport.
 * A throw from the sink is a bug: the transport closes the connection with 4011 and reports it to `failed`.
 */
export interface TransportSink {
  /** An upgrade asks for a decision: call `accept` or `reject` within `handshakeTimeoutMs`, now or later. */
  upgrade(request: UpgradeRequest): void
  /** The response is queued; frames may be sent to the connection from now on. Comes before its first message. */
  open(connection: ConnectionId, upgrade: UpgradeId): void
  /**
   * One complete WebSocket message, in arrival order per connection.
   * @param data Borrowed: valid until the call returns. Text is valid UTF-8.
   */
  message(connection: ConnectionId, data: Uint8Array, isBinary: boolean): void
  /** Several at once, instead of {@link message}. A transport may pass on all messages one by one. */
  messageRun?(connection: ConnectionId, run: MessageRun): void
  /** The answer to {@link Transport.notifyDrained}. None comes for a connection that closes before. */
  drained(connection: ConnectionId): void
  /** The connection is gone. Comes exactly once for every `open`, last. `code` is 1006 when no close frame arrived. */
  closed(connection: ConnectionId, code: number, reason: string): void
  /** The transport itself is in trouble (a thread died, the listening socket failed, the sink threw). */
  failed(error: Error): void
}

/** Where a transport listens. */
export interface TransportAddress {
  readonly host: string
  readonly port: number
}

/** Counters since `start`; gauges at the moment of the call. */
export interface TransportStats {
  readonly connections: number
  readonly acceptedCount: number
  readonly refusedCount: number
  /** Those of them that found the transport full: with `connectionLimit` connections, or without a descriptor. */
  readonly fullCount: number
  /** The most connections that it holds: `maxConnections`, or what the descriptor limit of the process leaves room for. */
  readonly connectionLimit: number
  /** Connections of proxies that were closed because they did not begin with a valid PROXY header. */
  readonly proxyHeaderRefusedCount: number
  readonly closedCount: number
  readonly slowConsumerCount: number
  /** Messages that were left out for a member that lagged, because a newer one of their topic followed. */
  readonly conflatedCount: number
  /** Messages that were left out for a member that lagged, because they were the oldest. */
  readonly droppedCount: number
  readonly receivedMessageCount: number
  /** Those of them that a prepared answer answered, see {@link Transport.prepareAnswer}. The sink was not told. */
  readonly answeredMessageCount: number
  readonly receivedByteCount: number
  /** Frames put into outboxes, one per receiving connection. */
  readonly deliveredCount: number
  readonly sentByteCount: number
  /** Memory for messages and request heads that are not complete; 0 if the transport cannot tell. */
  readonly partialBytes: number
  /** Threads that failed and were started again. */
  readonly restartedThreadCount: number
  /** Bytes that wait for all connections; shared bytes count once. */
  readonly outboxBytes: number
}

/**
 * Accepts connections and moves frames. Knows no key, pattern or verb: only connections, groups and frames.
 *
 * Order: calls take effect in the order they are made; a connection gets its frames in the order of the calls that
 * addressed it. Calls that name a connection that has closed do nothing: the close may be on its way to the sink.
 * Calls of one turn of the event loop are handed over together, at the latest when the turn ends.
 */
export interface Transport {
  readonly name: string
  readonly capabilities: TransportCapabilities
  /**
   * Binds and starts to accept.
   * @throws {WebMQError} `E_ADDRESS_IN_USE`, `E_ADDRESS_UNAVAILABLE`, `E_TRANSPORT_MISSING`, `E_OPTION_INVALID`.
   */
  start(sink: TransportSink): Promise<TransportAddress>
  /**
   * Takes the upgrades of a Node `http` server that the caller owns, instead of or beside an own port.
   * Returns a function that stops taking them.
   * @param path Upgrades of other paths MUST be left to the other listeners of the server, if it has any when one
   *   arrives; absent: all WebSocket upgrades are taken.
   * @throws {WebMQError} `E_UNSUPPORTED` without the `attach` capability.
   */
  attach(server: Server, sink: TransportSink, path?: string): () => void
  /**
   * Replaces all certificates: handshakes that begin after the call get these, connections go on. Absent without the
   * `tlsReload` capability.
   * @throws {WebMQError} `E_OPTION_INVALID`: one of them does not work, and all old ones stay.
   */
  setCertificates?(certificates: readonly TlsCertificate[]): void
  /**
   * Serves an event stream to a request of a connection that the transport gave to `httpServer`, because its first request
   * asked for something else. The connection is the transport's from then on. Absent without the `sse` capability.
   * @returns `false`: it cannot take this connection, and the request is still unanswered.
   */
  takeStream?(request: IncomingMessage, response: ServerResponse): boolean
  accept(upgrade: UpgradeId, options?: AcceptOptions): void
  reject(upgrade: UpgradeId, rejection: Rejection): void
  /** Adds a connection to a group. Joining twice is a no-op. */
  join(connection: ConnectionId, group: GroupId): void
  /** Takes a connection out of a group. Leaving a group it is not in is a no-op. */
  leave(connection: ConnectionId, group: GroupId): void
  /**
   * Sends one message to every member of any of the groups, once each.
   * @param data Text when a string or when `isBinary` is false (then valid UTF-8). Copied before the call returns.
   * @param except This connection does not get it.
   * @param topic What the message is about: an integer from 0 to 2^32 - 1. Two topics that may wait at the same time have
   *   different numbers. Without one, the message is never left out.
   * @param isUrgent It is not held back, nor is what stands before it for its receivers, see
   *   `TransportOptions.flushIntervalMs`. Has no meaning without the `threads` capability: nothing is held back then.
   */
  multicast(
    groups: readonly GroupId[],
    data: FrameData,
    isBinary: boolean,
    except?: ConnectionId,
    topic?: number,
    isUrgent?: boolean,
  ): void
  /**
   * Says which messages of a group its members may miss while they lag, instead of being closed with 4008. A message is
   * left out only if all groups allow it that it reaches the member through. `undefined`: none, as at first.
   *
   * A member lags when its socket is full. What it gets keeps its order. What it still has to get is limited by
   * `maxOutboxBytes`. Call it before the first `join`; members that join later need it too. Event
   * streams miss nothing. Without the `overflow` capability, this does nothing.
   */
  setOverflow(group: GroupId, overflow: GroupOverflow | undefined): void
  /**
   * Flow control for in-process publishers: `undefined` when they may go on, otherwise a promise that resolves within one
   * second. Then ask again. Absent: the transport cannot tell.
   */
  writable?(): Promise<void> | undefined
  /**
   * Lets the transport answer text messages by itself: each that is `request`, of any connection, gets `answer`, and the sink
   * is not told. It ends after `validMs`, with the next multicast, and with the next call. Answers keep the order of the requests
   * of a connection, as far as the sink answers in its call. The transport MAY pass any request to the sink all the same, and
   * does so for most of a flood. Absent without the `answers` capability.
   * @param validMs An integer, at most 65,535.
   */
  prepareAnswer?(request: string, answer: string, validMs: number): void
  /** Sends one message to one connection. `data` as in `multicast`. */
  send(connection: ConnectionId, data: FrameData, isBinary: boolean): void
  /**
   * Calls the sink's `drained` once, when no more output waits for the connection than `level` says. Frames sent before
   * this call count. While a call is unanswered, the caller MUST NOT make another for the connection.
   */
  notifyDrained(connection: ConnectionId, level: OutboxLevel): void
  /**
   * Stops reading from the connection's socket; what was read before still arrives. Idempotent. Frames and pings still go
   * out. A paused connection is not dropped with 4003: its pong may wait unread. The transport notices a dead peer by a
   * reset or after `resume`. The caller MUST resume or close every connection that it pauses: there is no time limit.
   * `close` reads on by itself. Without the `pause` capability, this does nothing.
   */
  pause(connection: ConnectionId): void
  /** Reads on after {@link pause}. Idempotent. */
  resume(connection: ConnectionId): void
  /** Sends what is queued, then a close frame, and waits for the peer's at most `closeTimeoutMs`. Frames sent later are dropped. */
  close(connection: ConnectionId, code: number, reason: string): void
  stats(): TransportStats
  /** Closes the listening socket; connections go on. Idempotent. */
  stopAccepting(): Promise<void>
  /**
   * Ends every connection (1001), waits for the threads, frees everything. Idempotent; `closed` comes for every connection
   * before it resolves.
   * @param limitMs After this time, connections whose peer has not answered are destroyed; default: `closeTimeoutMs` of
   *   each decides alone.
   */
  stop(limitMs?: number): Promise<void>
}
