import type { IncomingMessage, Server as NodeHttpServer, ServerResponse } from 'node:http'
import type { PresenceMember, StreamStatus } from 'webmq-client/protocol'
import type { StreamWriter } from '../../features/streams/writer.js'
import type { ServerEvents } from '../../kernel/node/emitter.js'
import type { ServerAddress } from '../../kernel/node/endpoint.js'
import type { ServerStats } from '../../kernel/node/stats.js'
import type { TransportAddress } from '../../kernel/ports/transport.js'
import type { BatchMessage, PublishOptions, PublishResult } from '../../kernel/publishing/publish-options.js'
import type { LocalHandler, LocalListenOptions, LocalSubscription } from '../../kernel/routing/local-listeners.js'
import type { ServerOptions } from '../options/server-options.js'
import type { HistoryQuery, HistoryResult } from './read-history.js'

export type { ServerAddress, ServerEvents, StreamWriter }

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

/** Options of {@link WebMQServer.stream}. */
export interface StreamOptions {
  /** A JSON value that readers get with the stream. */
  readonly meta?: unknown
}

/** Options of {@link WebMQServer.stop}. */
export interface StopOptions {
  readonly drainMs?: number
  readonly delayMs?: number
}

/** The last stream of a key. Of a stream of bytes it has `bytes`, of any other `text`. */
export interface StreamContent {
  readonly text?: string
  readonly bytes?: Uint8Array
  /** `undefined`: the key has no stream. */
  readonly id: string | undefined
  readonly status: StreamStatus | undefined
  readonly meta: unknown
  readonly result: unknown
  /** The log has no longer got all of it. */
  readonly isCut: boolean
  /** It has everything up to here. */
  readonly position: string
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
  stop(options?: StopOptions): Promise<void>
  /**
   * Publishes a message. Resolves once the broker has accepted it and the transport is ready for more. Await it at least
   * now and then: otherwise a publisher that is faster than the network, or than most clients, overflows their outboxes.
   * A single slow client delays nobody.
   * @param payload Any JSON value, sent as text, or a `Uint8Array`, sent unchanged. Copied.
   * @throws {WebMQError} `E_KEY_INVALID`, `E_MESSAGE_INVALID` (the id), `E_PAYLOAD_INVALID` (JSON cannot say it: a `Map`, a
   *   promise, `NaN`), `E_PAYLOAD_TOO_LARGE`, `E_BROKER_UNAVAILABLE`, `E_NOT_RUNNING`; as every call `E_OPTION_INVALID` for
   *   an option that it does not have, with the name that may be meant.
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
   * @throws {WebMQError} `E_PATTERN_INVALID`, `E_OPTION_INVALID` (the handler, the group); `E_NOT_RUNNING` after a stop.
   */
  listen(pattern: string, handler: LocalHandler, options?: LocalListenOptions): LocalSubscription
  /**
   * Answers requests to the keys of a pattern. One responder of all nodes gets a request. What the handler returns, or its
   * promise resolves with, is the reply. A `WebMQError` that it throws reaches the requester. Any other error is logged,
   * and the requester gets `E_RESPONSE`.
   * @throws {WebMQError} `E_PATTERN_INVALID`, `E_OPTION_INVALID` (the handler, the group); `E_NOT_RUNNING` after a stop.
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
   * @throws {WebMQError} `E_KEY_INVALID`, `E_POSITION_INVALID`, `E_OPTION_INVALID`, `E_PAYLOAD_INVALID` (a text message is not JSON),
   *   `E_UNSUPPORTED` (the broker keeps no log), `E_NOT_RUNNING`.
   */
  history(key: string, query?: HistoryQuery): Promise<HistoryResult>
  /**
   * Begins a stream: a message that grows by appends until it ends. Who listens to the key gets each append; who comes
   * late reads the whole. Responds to requests at the key in the group `stream`.
   * @throws {WebMQError} `E_STREAM_BUSY`: another stream of the key has not ended; `E_UNSUPPORTED`: the key is not logged, or
   *   nodes share no log; `E_STREAM_LIMIT`, `E_KEY_INVALID`, `E_BROKER_UNAVAILABLE`, `E_NOT_RUNNING`.
   */
  stream(key: string, options?: StreamOptions): Promise<StreamWriter>
  /**
   * Reads the last stream of a key, as far as it was written.
   * @throws {WebMQError} `E_UNSUPPORTED`, `E_STREAM_LIMIT`, `E_KEY_INVALID`, `E_NOT_RUNNING`.
   */
  readStream(key: string): Promise<StreamContent>
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
