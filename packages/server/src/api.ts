import type { IncomingMessage, Server as NodeHttpServer, ServerResponse } from 'node:http'
import type { ErrorCode, GapReason, PresenceMember } from 'webmq-client/protocol'
import type { CertificateStats } from './certificates/store.js'
import type { ClusterStats } from './cluster/index.js'
import type { BrokerChange } from './health/broker-watch.js'
import type { HookCounts, WebhookStats } from './hooks/index.js'
import type { TokenFailure } from './identity/token-failures.js'
import type { LocalGap, LocalHandler } from './in-process/listeners.js'
import type { HistoryQuery, HistoryResult } from './in-process/read-history.js'
import type { MeasurementStats } from './measuring/measurements.js'
import type { ServerOptions } from './options/options.js'
import type { BrokerStats, BrokerStatus, RefusalReason } from './ports/broker.js'
import type { TransportAddress, TransportStats } from './ports/transport.js'
import type { PresenceStats } from './presence/index.js'
import type { QueueGroupStats } from './queue-groups/index.js'

/** The address of a listening server. */
export interface ServerAddress {
  readonly host: string
  readonly port: number
  /** Address of the WebSocket endpoint: `ws://127.0.0.1:8080/ws`. */
  readonly url: string
}

/** Options of {@link WebMQServer.publish}. */
export interface PublishOptions {
  /** Message id, 1 to 64 characters of `[A-Za-z0-9_-]`. A second message of any server to the same key with the same id within the dedupe window is not delivered. */
  readonly id?: string
  /**
   * The trace that the message belongs to, as `traceparent` of W3C Trace Context; default: the active span of
   * OpenTelemetry. One that is not valid is ignored.
   */
  readonly traceparent?: string
  /** The message reaches live listeners only: it is not logged, although a rule covers its key. It has no position. */
  readonly ephemeral?: boolean
}

/** One message of {@link WebMQServer.publishBatch}. */
export interface BatchMessage extends PublishOptions {
  readonly key: string
  /** See {@link WebMQServer.publish}. */
  readonly payload: unknown
}

/** The result of a publish. */
export interface PublishResult {
  readonly duplicate: boolean
  /** Position in the broker's log, `epoch:offset`; absent when the broker keeps no log. */
  readonly position?: string
}

/** Options of {@link WebMQServer.listen}. */
export interface LocalListenOptions {
  /** Called, in order with the messages, when messages may be missing before the next one. Errors are logged. */
  readonly onGap?: (gap: LocalGap) => unknown
  /**
   * Name of a queue group, 1 to 64 characters of `[A-Za-z0-9_-]`: of each message, one member of the group with this
   * pattern gets it, over all connections and nodes. There are no gaps: without a member, the group misses the message.
   */
  readonly group?: string | undefined
}

/** Options of {@link WebMQServer.respond}. */
export interface RespondOptions {
  /** Name of the group of responders, as in {@link LocalListenOptions}. Default: that of all responders of the pattern. */
  readonly group?: string | undefined
}

/** Options of {@link WebMQServer.request}. */
export interface RequestOptions {
  /** Time for the reply in milliseconds; default 10,000, at most 300,000. */
  readonly timeoutMs?: number | undefined
}

/** Events of a server. */
export interface ServerEvents {
  /** The status of the broker has changed to `up`, `blocked` or `down`. */
  broker: BrokerChange
  /** Messages may be missing for listeners of this node; they are notified too. */
  gap: { readonly reason: GapReason }
}

/** Counters of a node's broker, its status and its downtime. */
export interface ServerBrokerStats extends BrokerStats {
  readonly status: BrokerStatus
  /** Time since the start during which the broker was not `up`, including a present outage. */
  readonly awayMs: number
  /** Duration of the last completed outage; 0 without one. */
  readonly lastAwayMs: number
}

/** A subscription in the server's process. */
export interface LocalSubscription extends Disposable {
  readonly pattern: string
  /** Resolves once the handler gets messages. Rejects with `E_BROKER_UNAVAILABLE`, or `E_NOT_RUNNING` when the server stops first. */
  readonly ready: Promise<void>
  /** Ends the subscription; the handler gets no message after the call. */
  unlisten(): void
}

/** Connections that wait because they have caused too much work. Counters since the start; gauges at the time of the call. */
export interface WorkStats {
  /** Connections that are not being read at present. */
  readonly pausedCount: number
  /** How often reading from a connection was paused. */
  readonly pauseCount: number
  /** Memory of messages that wait for the turn of their connection. */
  readonly backlogBytes: number
}

/** Why a plain HTTP connection was ended: room for others, no request for too long, too many at once, no room. */
export type HttpDropReason = 'evicted' | 'timeout' | 'pipelining' | 'full'

/** Plain HTTP connections: open ones, and those that were ended or refused since the start. */
export interface HttpStats {
  readonly connectionCount: number
  readonly droppedCounts: Readonly<Partial<Record<HttpDropReason, number>>>
}

/** Counters since the start; gauges at the time of the call. */
export interface ServerStats extends MeasurementStats {
  readonly connectionCount: number
  /** Users with an open connection to this node. */
  readonly userCount: number
  /** Listens of all connections. */
  readonly listenCount: number
  /** Patterns that clients or handlers of this node listen to. */
  readonly patternCount: number
  /** Estimated memory of these patterns. */
  readonly patternBytes: number
  /** Protocol messages received from clients. */
  readonly receivedCount: number
  /** Messages with a listener on this node, each counted once. */
  readonly routedCount: number
  /** Messages dropped because in-process handlers were too slow. */
  readonly localDroppedCount: number
  /** Protocol messages and requests of the HTTP API that were answered with an error, by error code. */
  readonly refusedCounts: Readonly<Partial<Record<ErrorCode, number>>>
  /** Refused tokens, by reason. */
  readonly tokenFailureCounts: Readonly<Record<TokenFailure | 'missing', number>>
  /** Gaps reported to listeners, one per pattern, by reason. */
  readonly gapCounts: Readonly<Partial<Record<GapReason, number>>>
  /** Connections refused with `E_CONNECTION_LIMIT`: those of an address, and of a user. */
  readonly connectionLimitCounts: { readonly address: number; readonly user: number }
  /** Publishes refused because their connection, or their user, publishes too fast. */
  readonly publishRateCounts: { readonly connection: number; readonly user: number }
  /** `X-Forwarded-For` headers of trusted proxies that were ignored because they were malformed. */
  readonly malformedForwardedCount: number
  /** Messages of the broker that no listener got, by reason. */
  readonly refusedMessageCounts: Readonly<Record<RefusalReason, number>>
  readonly presence: PresenceStats
  readonly queueGroups: QueueGroupStats
  /** Messages between nodes about connections and revoked tokens. */
  readonly cluster: ClusterStats
  readonly work: WorkStats
  readonly broker: ServerBrokerStats
  readonly transport: TransportStats
  /** Plain HTTP connections on the public port. */
  readonly http: HttpStats
  /** Present with an audit log. */
  readonly audit?: { readonly writtenCount: number; readonly droppedCount: number }
  /** Questions to hooks and webhooks since the start, by hook and outcome. */
  readonly hooks: HookCounts
  /** Present with a webhook. */
  readonly webhook?: WebhookStats
  /** Present with TLS. */
  readonly tls?: CertificateStats
}

/** What a reload has done, by the names of options, `jwt.secret` for nested ones. */
export interface ReloadResult {
  /** They have their new value. */
  readonly changed: readonly string[]
  /** They keep their value until the next start. */
  readonly needRestart: readonly string[]
}

/** A WebMQ server: one node. */
export interface WebMQServer {
  /** The address; `undefined` while the server does not listen. */
  readonly address: ServerAddress | undefined
  /** Where `adminPort` listens; `undefined` without the option, and while the server does not run. */
  readonly adminAddress: TransportAddress | undefined
  /**
   * Binds the port. Resolves once the server accepts connections; a second call resolves to the same address.
   * @throws {WebMQError} `E_ADDRESS_IN_USE`, `E_ADDRESS_UNAVAILABLE`, `E_TRANSPORT_MISSING`, `E_BROKER_UNAVAILABLE` (after
   *   `brokerStartTimeoutMs`), `E_BROKER_REFUSED`, `E_BROKER_MISSING`, `E_OPTION_INVALID` (a
   *   certificate file). The server is then stopped; create another to try
   *   again. `E_NOT_RUNNING` after a stop.
   */
  start(): Promise<ServerAddress>
  /**
   * Accepts WebSocket upgrades of your own Node `http` server (Express, Fastify), instead of `start` or in addition to
   * it. Resolves, once connections are accepted, to a function that detaches the server. Upgrades of other paths are left
   * to the other listeners of your server, if it has any. Without tokens or `insecure`, only clients of this machine may
   * connect, and none through a proxy that adds a header such as `X-Forwarded-For`.
   * @throws {WebMQError} `E_UNSUPPORTED` when the transport does not support it; the errors of `start`.
   */
  attach(httpServer: NodeHttpServer): Promise<() => void>
  /**
   * Answers `/health`, `/ready`, `/metrics` and, if enabled, the demo page. Use it in your own `http` server.
   */
  handleRequest(request: IncomingMessage, response: ServerResponse): void
  /**
   * Takes other options while the server runs. `options` are all of them, as for `createServer`: what is absent gets its
   * default. An option that cannot change keeps its value, see the `reloadable` ones in `docs/configuration.md`. One line of
   * the log names each option that changes or cannot.
   * @throws {WebMQError} `E_OPTION_INVALID`, `E_INSECURE`; nothing has changed.
   */
  reload(options: ServerOptions): ReloadResult
  /** Opens the file of `auditLog` again, after a tool has moved it away. Without a file it does nothing. */
  reopenAuditLog(): void
  /**
   * Drains and stops. For `delayMs` (default `drainDelayMs`) only `/ready` says so. Then the server answers upgrades with 503
   * and closes the connections with 4001 and a time to reconnect after, spread over at most `drainMs` (default
   * `drainTimeoutMs`). Probes get answers until the end. Resolves when everything is closed, within 2 s after that: anything
   * that does not answer is ended by force, and logged. A second call resolves together with the first.
   */
  stop(options?: { readonly drainMs?: number; readonly delayMs?: number }): Promise<void>
  /**
   * Publishes a message. Resolves once the broker has accepted it and the transport is ready for more. Await it at least
   * now and then: otherwise a publisher that is faster than the network, or than most clients, overflows their outboxes.
   * A single slow client delays nobody.
   * @param payload Any JSON value, sent as text, or a `Uint8Array`, sent unchanged. Copied.
   * @throws {WebMQError} `E_KEY_INVALID`, `E_MESSAGE_INVALID` (the id), `E_PAYLOAD_INVALID` (JSON cannot say it: a `Map`, a
   *   promise, `NaN`), `E_PAYLOAD_TOO_LARGE`, `E_BROKER_UNAVAILABLE`, `E_NOT_RUNNING`.
   */
  publish(key: string, payload: unknown, options?: PublishOptions): Promise<PublishResult>
  /**
   * Publishes messages in order. Resolves with their results once the broker has accepted all of them. They are delivered
   * as if published one by one, but without a promise and, with a remote broker, without a round trip per message. A batch
   * is sent at once, so one that is larger than `maxOutboxBytes` may close its listeners as slow consumers.
   * @throws {WebMQError} As `publish`. One invalid message refuses the whole batch, and the error names it. After
   *   `E_BROKER_UNAVAILABLE` some messages may have been accepted; publish all of them again if each has an `id`.
   */
  publishBatch(messages: readonly BatchMessage[]): Promise<readonly PublishResult[]>
  /**
   * Calls a handler in this process for every message of a pattern, in order, in a later turn of the event loop. Errors of
   * the handler are logged. You may call this before `start`. While the broker is away, `ready` waits, and rejects after
   * `brokerTimeoutMs`.
   * @throws {WebMQError} `E_PATTERN_INVALID`; `E_NOT_RUNNING` after a stop.
   */
  listen(pattern: string, handler: LocalHandler, options?: LocalListenOptions): LocalSubscription
  /**
   * Answers requests to the keys of a pattern. One responder of all nodes gets a request. What the handler returns, or its
   * promise resolves with, is the reply. A `WebMQError` that it throws reaches the requester. Any other error is logged,
   * and the requester gets `E_RESPONSE`.
   * @throws {WebMQError} `E_PATTERN_INVALID`, `E_OPTION_INVALID` (the group); `E_NOT_RUNNING` after a stop.
   */
  respond(pattern: string, handler: LocalHandler, options?: RespondOptions): LocalSubscription
  /**
   * Sends a request to one responder, in the process, at a client, or at another node. Resolves with its reply.
   * @throws {WebMQError} `E_NO_RESPONDERS` at once, when nobody responds to the key; `E_TIMEOUT`; `E_RESPONSE`, or the
   *   code of the responder; `E_KEY_INVALID`, `E_PAYLOAD_INVALID`, `E_PAYLOAD_TOO_LARGE`, `E_UNSUPPORTED`,
   *   `E_BROKER_UNAVAILABLE`, `E_NOT_RUNNING`.
   */
  request(key: string, payload: unknown, options?: RequestOptions): Promise<unknown>
  /**
   * Reads messages of a key from the broker's log, in log order.
   * @throws {WebMQError} `E_KEY_INVALID`, `E_POSITION_INVALID`, `E_PAYLOAD_INVALID` (a text message is not JSON),
   *   `E_UNSUPPORTED` (the broker keeps no log), `E_NOT_RUNNING`.
   */
  history(key: string, query?: HistoryQuery): Promise<HistoryResult>
  /**
   * Calls a handler for every event of a kind, in order, in a later turn of the event loop. Errors of the handler are
   * logged. You may call this before `start`.
   * @returns A function that removes the handler.
   */
  on<E extends keyof ServerEvents>(event: E, handler: (event: ServerEvents[E]) => unknown): () => void
  /**
   * The members of a key on all nodes, as far as this node knows. The first use of presence on a node waits up to a second
   * for the other nodes.
   * @throws {WebMQError} `E_KEY_INVALID`, `E_NOT_RUNNING`.
   */
  presence(key: string): Promise<readonly PresenceMember[]>
  /** @throws {WebMQError} `E_NOT_RUNNING`. */
  stats(): ServerStats
}
