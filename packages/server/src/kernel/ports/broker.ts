import type { GapReason } from 'webmq-client/protocol'
import type { MessageAttributes } from './attributes.js'
import type { BrokerStats } from './broker-stats.js'
import type { StreamView } from './roll-up.js'
import type { SharedLog } from './shared-log.js'
import type { WorkMeter } from './work-meter.js'

/**
 * A position in a broker's ordered log. On the wire and for applications it is the text `epoch:offset.fingerprint`
 * (`position.ts`).
 */
export interface Position {
  /**
   * Identifies a log until it begins anew: 1 to 52 characters of `[A-Za-z0-9_:.-]`. Offsets of different epochs cannot
   * be compared. A log that outlives the process stores its epoch.
   */
  readonly epoch: string
  /** A safe integer that grows with every message of the epoch; 0 stands before the first message. */
  readonly offset: number
  /**
   * Of what stands there: 30 bits, the same on every node and after every restart. A log that has lost its end may give
   * the offset again, with another fingerprint. 0: unknown, or there is nothing before.
   */
  readonly fingerprint: number
}

/** Why a link ends although the broker is there: its log begins another epoch, or has to be read again. */
export class LogRestart extends Error {}

/** What a broker can do; each flag is asserted by the conformance suite. */
export interface BrokerCapabilities {
  /** Keeps messages of logged keys for `read`. */
  readonly history: boolean
  /**
   * Keeps the last message of each retained key for `read`, however old it is. With `durable`, a node that starts later
   * has it too.
   */
  readonly retained: boolean
  /**
   * All nodes see the messages of a key in one order. Without it, nodes may interleave the messages of several
   * publishing nodes differently. Messages of one node keep the order of its calls with every broker.
   */
  readonly ordered: boolean
  /**
   * All nodes read one log: a position of one node is good on every other. Without it each node keeps a log of its own,
   * and answers a position of another node with `epoch-changed` and no messages.
   */
  readonly sharedLog: boolean
  /** `publish` waits until the broker has accepted the message. */
  readonly confirms: boolean
  readonly queueGroups: boolean
  /** The log outlives the nodes: a node that starts later has the messages that were logged before. */
  readonly durable: boolean
  /** Carries messages to other nodes. */
  readonly manyNodes: boolean
}

/** A connection whose client publishes again, in order and with the same ids, what its node has not answered. */
export interface PublishingConnection {
  /**
   * It has ended: its client goes on elsewhere. A broker sends nothing more of what waits, or it would stand in the log
   * before earlier messages that come by another node.
   */
  readonly isClosed: boolean
}

/** A message on its way to a broker. */
export interface OutboundMessage {
  readonly key: string
  /** Borrowed: the broker copies what it keeps before `publish` returns. */
  readonly payload: Uint8Array
  /** Whether the payload came in a binary frame. */
  readonly isBinary: boolean
  /**
   * A second message with the same id within the window is a duplicate. ASCII, 22 characters of `[A-Za-z0-9_-]`: the node
   * derives it from the publisher, the key and the publisher's id. A broker refuses any other form with
   * `E_MESSAGE_INVALID`.
   */
  readonly messageId?: string
  /** The connection that published it: comes back with the delivery on this node, which leaves that connection out. */
  readonly publisher?: number
  /** Whose client publishes the message again if it gets no answer. Only with a message id. */
  readonly author?: PublishingConnection
  /**
   * Come back with the delivery on all nodes, and with the reads of the log. A broker does not log a message whose
   * attributes say `isEphemeral`: it has no position. Live listeners of all nodes get it. A broker that brings logged and
   * other messages in one order keeps this one in that order.
   */
  readonly attributes?: MessageAttributes
}

/** A message on its way from a broker to the listeners of this node. */
export interface InboundMessage {
  readonly key: string
  /** Valid until the sink returns. */
  readonly payload: Uint8Array
  readonly isBinary: boolean
  readonly position?: Position
  /** As given to `publish`, on the publishing node alone. */
  readonly publisher?: number
  /** As given to `publish`. */
  readonly attributes?: MessageAttributes
}

/** The answer to a publish that the broker has accepted. */
export interface Accepted {
  readonly position?: Position
  /** A message with the same id was accepted within the window before; this one was not delivered again. */
  readonly isDuplicate: boolean
}

/** What to read from the log. Several members narrow it down together. */
export interface ReadRange {
  /**
   * The last message of each key, instead of all; a removed key has an empty payload. With `since`, those of keys that
   * changed after it; with a gap, none. The keys of all patterns must be retained. Not with `rewindMs` and `last`.
   */
  readonly isState?: boolean | undefined
  /** Messages after this position. */
  readonly since?: Position | undefined
  /** Messages before this position. Without `last`, the oldest of them. */
  readonly before?: Position | undefined
  /** Messages that were logged within this time before now. */
  readonly rewindMs?: number | undefined
  /** Most messages, the newest. */
  readonly last?: number | undefined
  /** Most messages per read, the oldest first; the result says where to read on. Default: all. */
  readonly limit?: number
  /** How streams are given. Default `messages`. */
  readonly view?: StreamView | undefined
}

/** Who reads, for reads that take long. */
export interface Reader {
  /** Nobody waits for the result any more: the read ends early, with a partial result. */
  readonly isClosed: boolean
  /** Pays for the messages that the read looks at. */
  readonly meter?: WorkMeter | undefined
}

/** The answer of a broker's log. */
export interface ReadResult {
  /** In log order. */
  readonly messages: readonly InboundMessage[]
  /** `messages` is complete up to this position. Unless the result is partial, live messages continue from it. */
  readonly position: Position
  /** The log goes on after `position`, within the range. */
  readonly isPartial: boolean
  /**
   * Set when fewer than `last` messages came, and there were older ones that the log no longer has, or no longer gives: they
   * are more, or older, than the rule of the key allows. Absent for reads with `since` or `rewindMs`. A log may say so of a
   * key although it has dropped messages of other keys alone.
   */
  readonly isCut?: true
  /**
   * Set when messages of the range may be missing: the log no longer has them, or not all keys that the patterns match
   * are logged (`no-history`). `messages` then has what the log has.
   */
  readonly gap?: GapReason
}

/**
 * Whether a broker takes messages: `up`; `blocked`, reachable but refusing messages, as RabbitMQ does when its memory
 * or disk runs out; `down`, not reachable. While it is not `up`, publishes wait within their bounds.
 */
export type BrokerStatus = 'up' | 'blocked' | 'down'

/** Default of {@link Broker.stop}: time for a broker that does not answer. */
export const BROKER_STOP_MS = 1_500

/**
 * Why a message of a broker is refused: it is not valid for WebMQ, larger than `maxPayloadBytes`, or the node failed to
 * deliver it, which is a bug.
 */
export type RefusalReason = 'malformed' | 'too-large' | 'failed'

/** A message of a broker that no listener gets. */
export interface RefusedMessage {
  readonly reason: RefusalReason
  /**
   * Pattern of the keys that the message may have: its key, or `#` when it does not tell its key. `undefined` when it
   * has no valid key, so that nobody can have listened to it.
   */
  readonly pattern: string | undefined
  /** For the log of the server. */
  readonly detail: string
}

/** How a broker calls its node. */
export interface BrokerSink {
  /**
   * A message for the listeners of this node, in the order of the log over all keys: a client's position stands for all
   * its patterns [P-8.7]. The broker may bring more than its bindings match: the node knows who listens. May be called
   * from inside `publish`, so the sink MUST NOT call the broker.
   * The node refuses a message with an invalid key or a payload above `maxPayloadBytes`, as {@link BrokerSink.refused}.
   * @returns Whether anyone on this node listened, or the message was refused. A broker that carried the message in vain counts it as surplus, and
   *   may forget it: nobody would notice if it came again.
   */
  deliver(message: InboundMessage): boolean
  /** Holds until the next call. The broker reports `down` before it tries again. */
  status(status: BrokerStatus, cause?: Error): void
  /**
   * Messages may be missing before the next delivery; the node tells all listeners whose pattern is affected. Called as
   * soon as the bindings are live again, before `up`.
   * @param isAffected Absent: all are.
   */
  gap(reason: GapReason, isAffected?: (pattern: string) => boolean): void
  /**
   * The broker does not deliver this message, and keeps its position if it is logged. The node counts and logs it, and
   * tells listeners whose pattern matches a `gap` (`refused`).
   */
  refused(message: RefusedMessage): void
}

/** Says whether a broker takes more messages now. */
export interface BrokerRoom {
  /**
   * It accepts messages more slowly than they come: further ones wait. `false` while it is away: then the broker itself keeps
   * them. Cost: none, it is asked for each publish.
   */
  readonly isFull: boolean
  /** Messages that it has been given and has not accepted. */
  readonly pendingCount: number
  /** Most messages that it is given while it is slow; `undefined` while it is quick. */
  readonly windowCount: number | undefined
  /** Messages that it has accepted. */
  readonly acceptedCount: number
  /** Called when it may not be full any more. */
  onRoom: (() => void) | undefined
}

/**
 * Carries messages between nodes. One consumer per node, never one queue per connection.
 *
 * Methods may answer synchronously: the embedded broker does, and costs no promise per message.
 */
export interface Broker {
  readonly name: string
  readonly capabilities: BrokerCapabilities
  /** Whether it accepts messages as fast as they come. Absent where it always does. The same object for its life. */
  readonly room?: BrokerRoom | undefined
  /**
   * Resolves when the broker is up.
   * @throws {WebMQError} `E_BROKER_UNAVAILABLE` when the broker was not reached in time, or refuses this node.
   */
  start(sink: BrokerSink): Promise<void>
  /**
   * Starts interest in a pattern; live once it resolves. The node calls it exactly once per pattern until it calls
   * `unbind`, so a broker need not count.
   * @throws {WebMQError} `E_BROKER_UNAVAILABLE` (retryable) when the broker does not answer in time; the pattern is
   *   then not bound.
   */
  bind(pattern: string): void | Promise<void>
  /** Ends interest in a pattern that is bound; exactly once per bind. Messages under way may still be delivered. */
  unbind(pattern: string): void | Promise<void>
  /**
   * Resolves once the broker has accepted the message, not once anyone has received it. Every bound node gets it, this one as
   * the others do: so it knows that it hears them.
   * @throws {WebMQError} `E_STATE_LIMIT`: too many keys are retained. `E_BROKER_UNAVAILABLE`, and `E_TIMEOUT` of a broker
   *   that takes other messages (both retryable): it may or may not have been accepted. Its message may reach clients unless it has a `cause`; what names hosts or users belongs in the cause.
   */
  publish(message: OutboundMessage): Accepted | Promise<Accepted>
  /**
   * Publishes several messages in their order. Absent in brokers where it is not cheaper than `publish`.
   * @throws {WebMQError} as `publish`; some of them may then have been accepted.
   */
  publishBatch?(messages: readonly OutboundMessage[]): Promise<readonly Accepted[]>
  /**
   * Reads messages that match any of the patterns from the log. The rule of a key bounds reads by number or time.
   *
   * A read from a position never returns messages at or before it. A read before a position returns none at or after it.
   * Where the log has another fingerprint at the position, or none that it knows, the result has a gap. A position of the log's epoch beyond the end of the
   * node's copy is one that another node has given: the read waits, within a bound.
   *
   * A read may take several turns of the event loop. It gives the messages up to where the log ended when it began:
   * messages that arrive meanwhile follow as live ones. Without a limit the result is not partial, unless its reader
   * was closed.
   * @param reader Reads of one reader take turns with those of others. Default: the process itself.
   * @throws {WebMQError} `E_UNSUPPORTED` without the `history` capability, or for the state of keys that are not
   *   retained; `E_POSITION_INVALID` for a position that
   *   cannot be one of its, `E_NODE_BEHIND` (retryable) when the node's copy does not reach the position in time.
   */
  read(range: ReadRange, patterns: readonly string[], reader?: Reader): ReadResult | Promise<ReadResult>
  /**
   * Whether messages of this key are logged, those apart whose attributes say `isEphemeral`. Asked for each publish while a
   * listen is under way, so it answers at once. The same for the life of the broker. Absent: no key is logged.
   * A broker with the `history` capability MUST have it: streams, and publishes during a listen, go by it.
   */
  logs?(key: string): boolean
  /**
   * Whether the last message of this key is retained. Answers at once, and the same for the life of the broker. Absent: no key is.
   * A broker with the `retained` capability MUST have it: reads of ended streams go by it.
   */
  retains?(key: string): boolean
  /** The end of the log now; `undefined` without the `history` capability. */
  position(): Position | undefined | Promise<Position | undefined>
  /**
   * Resolves once this node has all that the log had at the call. The broker is asked one question at a time, for all who ask.
   * Absent where the log is the node's own: then it has.
   * @throws {WebMQError} `E_NODE_BEHIND` (retryable) when the broker does not tell, or the copy is not there in two seconds.
   */
  reachEnd?(): Promise<void>
  /** The log that all nodes share at the broker. Absent: there is none, and it does not matter which keys other nodes log. */
  readonly log?: SharedLog | undefined
  /**
   * The address has another user or password: the next attempt to connect uses it. Connections that are up stay.
   * Absent: the broker has no address.
   * @throws {WebMQError} `E_OPTION_INVALID`; the old address stays.
   */
  setAddress?(address: string): void
  stats(): BrokerStats
  /**
   * Waits for pending publishes, then ends the connections in order and leaves nothing of this node at the broker. After
   * `limitMs` it rejects the publishes that still wait, and ends the rest by force. Idempotent. While `start` is under way it
   * ends what that has begun.
   * @param limitMs Default {@link BROKER_STOP_MS}.
   */
  stop(limitMs?: number): Promise<void>
}
