import type { IncomingMessage, Server as NodeHttpServer, ServerResponse } from 'node:http'
import type { ErrorCode, GapReason, PresenceMember } from 'webmq-client/protocol'
import type { BrokerChange } from './health/broker-watch.js'
import type { LocalGap, LocalHandler } from './in-process/listeners.js'
import type { HistoryQuery, HistoryResult } from './in-process/read-history.js'
import type { BrokerStats, BrokerStatus } from './ports/broker.js'
import type { TransportStats } from './ports/transport.js'
import type { PresenceStats } from './presence/index.js'

/** Where a server listens. */
export interface ServerAddress {
  readonly host: string
  readonly port: number
  /** Address of the WebSocket endpoint: `ws://127.0.0.1:8080/ws`. */
  readonly url: string
}

/** Options of {@link WebMQServer.publish}. */
export interface PublishOptions {
  /** The message's own id, 1-64 characters of `[A-Za-z0-9_-]`: a second one within the broker's window is not delivered again. */
  readonly id?: string
}

/** One message of {@link WebMQServer.publishBatch}. */
export interface BatchMessage extends PublishOptions {
  readonly key: string
  /** As in {@link WebMQServer.publish}. */
  readonly payload: unknown
}

/** What became of a message that the process has published. */
export interface PublishResult {
  readonly duplicate: boolean
  /** Place in the broker's log, `epoch:offset`; absent when the broker keeps none. */
  readonly position?: string
}

/** Options of {@link WebMQServer.listen}. */
export interface LocalListenOptions {
  /** Called, in order with the messages, when some may be missing before the next; what it throws is logged. */
  readonly onGap?: (gap: LocalGap) => unknown
}

/** What a server tells the process that it is part of. */
export interface ServerEvents {
  /** The broker is `up`, `blocked` or `down`, and was something else before; from the start to when the server stops. */
  broker: BrokerChange
  /** All listeners of this node are being told that messages may be missing. */
  gap: { readonly reason: GapReason }
}

/** Counters of a node's broker, how it is, and how long it was not `up`. */
export interface ServerBrokerStats extends BrokerStats {
  readonly status: BrokerStatus
  /** Time since the start in which it was not `up`, present loss included. */
  readonly awayMs: number
  /** How long it was away the last time, until it was `up` again; 0 when it never was. */
  readonly lastAwayMs: number
}

/** A handler in the server's process. */
export interface LocalSubscription extends Disposable {
  readonly pattern: string
  /** Resolves when the handler gets messages; `E_NOT_RUNNING` when the server stops before, `E_BROKER_UNAVAILABLE`. */
  readonly ready: Promise<void>
  /** No message is handled after the call. */
  unlisten(): void
}

/** Counters since the start; gauges at the moment of the call. */
export interface ServerStats {
  readonly connectionCount: number
  /** Patterns that someone on this node listens with. */
  readonly patternCount: number
  /** Protocol messages that connections have sent. */
  readonly receivedCount: number
  /** Messages that someone on this node listened to, each counted once. */
  readonly routedCount: number
  /** Messages that local handlers were too slow for. */
  readonly localDroppedCount: number
  /** Protocol messages that were answered with an error, by its code. */
  readonly refusedCounts: Readonly<Partial<Record<ErrorCode, number>>>
  /** Patterns whose listeners were told that messages may be missing, by reason. */
  readonly gapCounts: Readonly<Partial<Record<GapReason, number>>>
  readonly presence: PresenceStats
  readonly broker: ServerBrokerStats
  readonly transport: TransportStats
}

/** A WebMQ server: one node. */
export interface WebMQServer {
  /** Where it listens; `undefined` while it does not. */
  readonly address: ServerAddress | undefined
  /**
   * Binds, and resolves when connections are taken. Started already, it resolves to the same address.
   * @throws {WebMQError} `E_ADDRESS_IN_USE`, `E_ADDRESS_UNAVAILABLE`, `E_TRANSPORT_MISSING`; `E_BROKER_UNAVAILABLE` after
   *   `brokerStartTimeoutMs`, `E_BROKER_REFUSED`, `E_BROKER_MISSING`: the server is then stopped, make another to try again.
   *   `E_NOT_RUNNING` once it was stopped.
   */
  start(): Promise<ServerAddress>
  /**
   * Takes WebSocket upgrades of a Node `http` server that the caller owns (Express, Fastify), instead of `start`, or
   * beside it. Resolves, when connections are taken, to a function that ends it.
   * @throws {WebMQError} `E_UNSUPPORTED` when the transport cannot.
   */
  attach(httpServer: NodeHttpServer): Promise<() => void>
  /**
   * Answers `/health`, `/ready`, `/metrics` and, if it is on, the demo page, for those who mount them in a server of their own.
   */
  handleRequest(request: IncomingMessage, response: ServerResponse): void
  /**
   * Drains and ends: no new connections, the others are sent away with 4001 and a time to come back after, spread over
   * at most `drainMs` (default `drainTimeoutMs`). Resolves when everything is closed. Idempotent: a second call
   * resolves with the first.
   */
  stop(options?: { readonly drainMs?: number }): Promise<void>
  /**
   * Resolves when the broker has accepted the message and the transport takes more: to await it, now and then, is what
   * keeps a publisher that is faster than the network, or than most clients, from costing clients their connection.
   * A client that is slower than the others delays nobody.
   * @param payload Anything that JSON can say, sent as text; or bytes, sent as they are. Copied.
   * @throws {WebMQError} `E_KEY_INVALID`, `E_MESSAGE_INVALID` (the id), `E_PAYLOAD_INVALID`, `E_PAYLOAD_TOO_LARGE`,
   *   `E_BROKER_UNAVAILABLE`, `E_NOT_RUNNING`.
   */
  publish(key: string, payload: unknown, options?: PublishOptions): Promise<PublishResult>
  /**
   * Publishes messages in their order, and resolves when the broker has accepted them all, with what became of each. They
   * are delivered as if published one by one; what is saved is a promise per message, and with a broker that is
   * elsewhere the wait. All of a batch is sent at once: one that is larger than `maxOutboxBytes` can close its listeners.
   * @throws {WebMQError} As `publish`. A message that cannot be published refuses them all, and the error says which;
   *   after `E_BROKER_UNAVAILABLE` some of them may have been accepted: with an `id` each, all can be published again.
   */
  publishBatch(messages: readonly BatchMessage[]): Promise<readonly PublishResult[]>
  /**
   * Calls a handler in this process for every message of a pattern, in order, after the turn that delivered it. What it
   * throws is logged. May be called before `start`. While the broker is away, `ready` waits, and fails after `brokerTimeoutMs`.
   * @throws {WebMQError} `E_PATTERN_INVALID`; `E_NOT_RUNNING` once stopped.
   */
  listen(pattern: string, handler: LocalHandler, options?: LocalListenOptions): LocalSubscription
  /**
   * Reads messages of a key from the broker's log, in its order.
   * @throws {WebMQError} `E_KEY_INVALID`, `E_POSITION_INVALID`, `E_PAYLOAD_INVALID` (a text message that is not JSON), `E_UNSUPPORTED` when
   *   the broker keeps no log, `E_NOT_RUNNING`.
   */
  history(key: string, query?: HistoryQuery): Promise<HistoryResult>
  /**
   * Calls a handler for every event of a kind, after the turn that brought it, in order; what it throws is logged. May be called
   * before `start`.
   * @returns Ends it.
   */
  on<E extends keyof ServerEvents>(event: E, handler: (event: ServerEvents[E]) => unknown): () => void
  /**
   * Who is present at a key, on all nodes, as this node knows it. The first call on a node that has not used presence yet waits up to
   * a second for the other nodes.
   * @throws {WebMQError} `E_KEY_INVALID`, `E_NOT_RUNNING`.
   */
  presence(key: string): Promise<readonly PresenceMember[]>
  /** @throws {WebMQError} `E_NOT_RUNNING`. */
  stats(): ServerStats
}
