import type { GapReason } from 'webmq-client/protocol'

/** Place in a broker's ordered log. On the wire and for applications it is the text `epoch:offset` (`position.ts`). */
export interface Position {
  /**
   * Names one life of a log: 1 to 52 characters of `[A-Za-z0-9_:.-]`. Offsets of different epochs cannot be compared. Where
   * logs live longer than a process, it is kept with the log: the id of a stream, a token that is stored beside it.
   */
  readonly epoch: string
  /** A safe integer that grows with every message of the epoch; 0 is the place before the first. */
  readonly offset: number
}

/** What a broker can do; each flag is asserted by the conformance suite. */
export interface BrokerCapabilities {
  /** Keeps messages for `read`: those of the keys that are to be logged. */
  readonly history: boolean
  /**
   * All nodes see the messages of a key in one order. Without it they see those of one node in the order of its calls, as they
   * do with every broker, and those of several nodes interleaved as they came.
   */
  readonly ordered: boolean
  /**
   * All nodes read one log: a position that one node has given is good on every other. Without it each node keeps a log of its own, and
   * answers a position of another node with `epoch-changed` and no messages.
   */
  readonly sharedLog: boolean
  /** `publish` waits for the broker's own acceptance. */
  readonly confirms: boolean
  readonly queueGroups: boolean
  /** The log outlives the nodes: one that starts later finds what was logged before. */
  readonly durable: boolean
  /** Carries messages to other nodes. */
  readonly manyNodes: boolean
}

/** A message on its way to a broker. */
export interface OutboundMessage {
  readonly key: string
  /** Borrowed: the broker copies what it keeps before `publish` returns. */
  readonly payload: Uint8Array
  /** Whether the payload came in a binary frame. */
  readonly isBinary: boolean
  /** The message's own id, for de-duplication within a window. */
  readonly messageId?: string
  /** Handed back with the delivery on the publishing node, so that it can leave out the publisher. Never leaves the node. */
  readonly origin?: number
}

/** A message on its way from a broker to the listeners of this node. */
export interface InboundMessage {
  readonly key: string
  /** Valid until the sink returns. */
  readonly payload: Uint8Array
  readonly isBinary: boolean
  readonly position?: Position
  /** As given to `publish`, when it happened on this node. */
  readonly origin?: number
}

/** What a publisher is told once the broker has accepted the message. */
export interface Accepted {
  readonly position?: Position
  /** A message with the same id was accepted within the window before; this one was not delivered again. */
  readonly isDuplicate: boolean
}

/** What to read from the log; each member narrows it down further. */
export interface ReadRange {
  /** What came after this place. */
  readonly since?: Position
  /** What was logged within this time before now. */
  readonly rewindMs?: number
  /** The newest so many. */
  readonly last?: number
  /** At most so many at once, the oldest first; the result says where to read on. Default: all. */
  readonly limit?: number
}

/** The answer of a broker's log. */
export interface ReadResult {
  /** In log order. */
  readonly messages: readonly InboundMessage[]
  /** Place in the log up to which `messages` is complete; unless the result is partial, live messages come after it. */
  readonly position: Position
  /** The log goes on after `position`. */
  readonly isPartial: boolean
  /**
   * Set when something may be missing that came after `since`, or within the time: because the log no longer holds it, or
   * because not everything that the patterns match is logged (`no-history`). `messages` then has what there is.
   */
  readonly gap?: GapReason
}

/**
 * Whether a broker takes messages: `up`; `blocked`, reachable but refusing them for now, as RabbitMQ does when its memory or disk
 * runs out; `down`, not reachable. While it is not `up`, publishes wait within their bounds.
 */
export type BrokerStatus = 'up' | 'blocked' | 'down'

/** Counters since the start; gauges at the moment of the call. */
export interface BrokerStats {
  /** Messages that the broker has accepted from this node. */
  readonly acceptedCount: number
  /** Publishes that were refused or given up. */
  readonly rejectedCount: number
  /** Messages that came to this node over the network, wanted or not; those that do not leave the process are not counted. */
  readonly receivedCount: number
  /**
   * Of those, duplicates, and messages that nobody on this node listened to: the cost of bindings that the broker cannot
   * express. Every node gets the whole log, so unwanted messages of the log are not counted.
   */
  readonly surplusCount: number
  /** Messages that came from elsewhere and could not be one of WebMQ's: a key or a payload that is not valid. */
  readonly malformedCount: number
  /** Publishes that wait to be accepted. */
  readonly pendingCount: number
  readonly pendingBytes: number
  /** Times the broker was lost. */
  readonly lostCount: number
}

/** What a broker tells its node. */
export interface BrokerSink {
  /**
   * A message for the listeners of this node, in the order of the log over all keys: a client's position stands for all its
   * patterns [P-8.7]. The broker may bring more than its bindings match: the node knows who listens. May be called from inside
   * `publish`, so the sink MUST NOT call the broker.
   * @returns Whether anyone on this node listened. A broker that carried the message in vain counts it as surplus, and may
   *   forget it: nobody would notice if it came again.
   */
  deliver(message: InboundMessage): boolean
  /** The last one said holds. `down` is said before anything is tried again. */
  status(status: BrokerStatus, cause?: Error): void
  /**
   * Messages that match the node's bindings may be missing before the next that is delivered; all listeners must be told whose
   * pattern is affected. Said as soon as the bindings are live again, before `up`.
   * @param isAffected Absent: all are.
   */
  gap(reason: GapReason, isAffected?: (pattern: string) => boolean): void
}

/**
 * Carries messages between nodes. One consumer per node, never one queue per connection.
 *
 * Methods may answer synchronously: the embedded broker does, and costs no promise per message.
 */
export interface Broker {
  readonly name: string
  readonly capabilities: BrokerCapabilities
  /**
   * Resolves when the broker is up.
   * @throws {WebMQError} `E_BROKER_UNAVAILABLE` when it was not reached in time, or refuses this node.
   */
  start(sink: BrokerSink): Promise<void>
  /**
   * Starts interest in a pattern; live once it resolves. The node calls it exactly once per pattern until it calls `unbind`,
   * so a broker need not count.
   * @throws {WebMQError} `E_BROKER_UNAVAILABLE` (retryable) when the broker does not answer in time; the pattern is then not bound.
   */
  bind(pattern: string): void | Promise<void>
  /** Ends interest in a pattern that is bound; exactly once per bind. Messages under way may still be delivered. */
  unbind(pattern: string): void | Promise<void>
  /**
   * Resolves once the broker has accepted the message, not once anyone has received it.
   * @throws {WebMQError} `E_BROKER_UNAVAILABLE` (retryable): it may or may not have been accepted.
   */
  publish(message: OutboundMessage): Accepted | Promise<Accepted>
  /**
   * As if published one by one, in their order; cheaper where the broker can carry several as one. Absent where it saves nothing.
   * @throws {WebMQError} as `publish`; some of them may then have been accepted.
   */
  publishBatch?(messages: readonly OutboundMessage[]): Promise<readonly Accepted[]>
  /**
   * Reads the log: messages that match any of the patterns. Of one key, what is asked for by number or time is bounded by its rule.
   * @throws {WebMQError} `E_UNSUPPORTED` without the `history` capability, `E_POSITION_INVALID` for a position that cannot be one of its.
   */
  read(range: ReadRange, patterns: readonly string[]): ReadResult | Promise<ReadResult>
  /** The end of the log now; `undefined` without the `history` capability. */
  position(): Position | undefined | Promise<Position | undefined>
  stats(): BrokerStats
  /** Waits, within a bound, for what is pending; leaves nothing of this node at the broker. Idempotent. */
  stop(): Promise<void>
}
