import type { MessageAttributes } from '../../../kernel/ports/attributes.js'
import type { BrokerCapabilities, Position } from '../../../kernel/ports/broker.js'
import type { LogPlace } from '../../../kernel/ports/shared-log.js'

/** A message that the broker has not accepted yet, as a {@link Link} gets it. */
export interface LinkMessage {
  /**
   * Counts from 1. A link sends in this order. A message that a lost link did not confirm is sent again on the next
   * link.
   */
  readonly sequence: number
  readonly key: string
  /** Never written again: a link may hand it to its library without a copy. */
  readonly payload: Uint8Array
  readonly isBinary: boolean
  /** The publishing connection; see {@link OutboundMessage.publisher}. Other nodes ignore it. */
  readonly publisher?: number | undefined
  /** The payload holds several messages (`bundle.ts`). Only for drivers that take bundles. */
  readonly isBundle?: boolean
  /** As in {@link OutboundMessage}. Receivers drop a second message with the same id. */
  readonly messageId?: string | undefined
  /** As in {@link OutboundMessage}. */
  readonly attributes?: MessageAttributes | undefined
  /** The message goes into the log. Only for drivers with `history`. */
  readonly isLogged: boolean
}

export interface LinkDelivery {
  readonly key: string
  /** Valid until the call returns. */
  readonly payload: Uint8Array
  readonly isBinary: boolean
  /** Where the message comes from; `undefined` for a message of another program. */
  readonly source: LinkSource | undefined
  /** As in {@link LinkMessage}. */
  readonly messageId?: string | undefined
  /** As in {@link LinkMessage}. Never those of another program. */
  readonly attributes?: MessageAttributes | undefined
}

export interface LoggedDelivery extends LinkDelivery {
  /** Greater than the offset of any earlier message. */
  readonly offset: number
  /** Of what the broker stores of it: see `log/fingerprint.ts`. */
  readonly fingerprint: number
  /** When it was logged, or published: Unix time in milliseconds. */
  readonly timeMs: number
}

export interface LogFollower {
  /**
   * Called before the first message. Called again, with `isContinued` false, when another log begins.
   * @param start The next message follows this position; nothing is missing in between.
   * @param isContinued `start` is the requested position, and nothing after it was lost. Otherwise the messages that
   *   follow are all the log has.
   */
  begins(start: Position, isContinued: boolean): void
  /**
   * Called in log order, once per offset. The log may hold a message twice: resent, or published again under its id.
   */
  message(delivery: LoggedDelivery): void
  /**
   * In place of {@link message}: the message at this offset is not valid for WebMQ.
   * @param key Its key; `undefined` when it does not tell one, so that it may be of any key.
   */
  malformed(offset: number, fingerprint: number, detail: string, key?: string): void
  /** In place of {@link message}: messages of this key that were delivered and cannot be replayed. */
  unlogged(offset: number, fingerprint: number, key: string): void
  /** The epoch began here: messages before are left of earlier epochs. */
  began(offset: number): void
  /**
   * No message has an offset after the last one, up to this one. Ignored when a message has this offset.
   * @param fingerprint Of the record at this offset, which is no message.
   */
  skipped(offset: number, fingerprint: number): void
}

export interface LinkSource {
  /** The {@link LinkContext.node} of the publishing node. */
  readonly node: string
  /** Number of the message among those of that node. */
  readonly sequence: number
  /** As in {@link LinkMessage}. */
  readonly publisher: number | undefined
  /** As in {@link LinkMessage}. */
  readonly isBundle?: boolean
}

/** What a link reports. `lost` is the last report. */
export interface LinkEvents {
  /**
   * A message that is not in the log, in the order of arrival. Nobody may want it. If it has a source, it may be a
   * duplicate: several subscriptions match it, or its node sent it again.
   */
  deliver(delivery: LinkDelivery): void
  /**
   * The broker has accepted this message, or all messages up to it. One that was logged counts as accepted when this node
   * receives it from the log, so that its publisher can read from its position.
   * @param duplicateOf The broker has not logged this message: the one at this position of the log has its id.
   */
  confirmed(sequence: number, isCumulative: boolean, duplicateOf?: LogPlace): void
  /** The broker has refused this message and would refuse it again. */
  refused(sequence: number, cause: Error): void
  /** The broker stops taking messages, or takes them again. */
  blocked(isBlocked: boolean, reason?: string): void
  /** The broker refuses everything that is logged, for this reason; without one: it takes it again. Nothing waits for it. */
  logRefused(reason?: string): void
  /**
   * A message of another program was dropped: it is not valid for WebMQ.
   * @param pattern Its key, or `#` when it does not tell its key: listeners are told that they miss a message. Absent
   *   when it has no valid key.
   */
  malformed(detail: string, pattern?: string): void
  /** A message was dropped: nobody asked for it, or it also comes from the log. */
  surplus(): void
  /** The link no longer reaches the broker, or its log: then the cause is a `LogRestart`. Reported once; `destroy` is called next. */
  lost(cause: Error): void
}

export interface LinkContext {
  /** 16 characters of `[0-9a-f]`, different for every start of every node. */
  readonly node: string
  /**
   * Nodes of one namespace exchange messages. Names the exchange, or begins channels and subjects.
   * `[A-Za-z0-9_-]{1,64}`.
   */
  readonly namespace: string
  /** Interval of heartbeats. A link that is silent for two intervals is lost. */
  readonly heartbeatMs: number
}

/**
 * One connection to a broker. It is never mended: when it is lost, a new link replaces it. Calls take effect in order.
 * Calls that are pending when the link is lost reject or stay unanswered.
 */
export interface Link {
  /**
   * Starts interest in a pattern. Resolves when every message that the broker accepts from then on arrives. Messages of
   * the log arrive through `follow` instead.
   * @throws {WebMQError} `E_BROKER_REFUSED` when the broker does not allow it; the link stays up.
   */
  bind(pattern: string): Promise<void>
  /** Ends interest in a pattern. May be called before the bind has resolved. */
  unbind(pattern: string): Promise<void>
  /** Only of drivers with history; without it, to ask for its `risk`. */
  readonly log?: LinkLog | undefined
  /** Sends a message; messages of one turn may share a write. `confirmed` or `refused` answers. Does not throw. */
  publish(message: LinkMessage): void
  /**
   * Ends the link in order, and removes what it created at the broker. Never rejects. It may wait for a broker that does
   * not answer for as long as that lasts: the caller calls `destroy` then.
   */
  close(): Promise<void>
  /** Ends the link at once; the broker finds that its connections have ended. Idempotent, also after `close`. */
  destroy(): void
}

/**
 * The log over one link. Calls reject, or stay unanswered, when the link is lost. All but `follow` and `risk` are called after
 * `follow` alone.
 *
 * Its mark is a durable hash of the rules that all nodes have had since the epoch of the log began (ADR 53). A node that begins
 * a log sets it.
 */
export interface LinkLog {
  /**
   * Follows the log until the link is lost: from after this position, or from the beginning without one. A hole in the
   * log ends the link. Resolves when everything that was logged before the call has arrived. Called at most once, after
   * all binds.
   */
  follow(after: Position | undefined, follower: LogFollower): Promise<void>
  /**
   * The end of the log, as the broker knows it: at or after every position that any node gave out before the call.
   * `undefined` when it does not know.
   */
  end(): Promise<LogPlace | undefined>
  /** As {@link SharedLog.risk}. */
  risk(): Promise<string | undefined>
  /** Whether the mark is there, and of the rules of this node. */
  isMarked(): Promise<boolean>
  /** Removes the mark, whatever its rules. */
  unmark(): Promise<void>
  /**
   * Begins another epoch that is marked, unless the log is marked by now. It MAY reject when that is done, and end the link.
   */
  begin(): Promise<void>
}

/** Version of this contract. It grows when drivers have to change. */
export const LINK_VERSION = 1

/** Makes links to one kind of broker. {@link RemoteBroker} does everything else. */
export interface LinkDriver {
  /**
   * The {@link LINK_VERSION} that the driver is written for. It MUST be a number of the driver's own, not the constant: a
   * server with another one refuses to start.
   */
  readonly linkVersion: typeof LINK_VERSION
  /** Name of the adapter, for example `rabbitmq`. */
  readonly name: string
  readonly capabilities: BrokerCapabilities
  /** Whether one message may carry several of the same key. `false` where other programs must see bare payloads. */
  readonly takesBundles: boolean
  /** The broker's address for logs and errors, without credentials. */
  readonly address: string
  /**
   * The next `connect` uses this address, which has another user or password.
   * @throws {WebMQError} `E_OPTION_INVALID`; the old one stays.
   */
  setAddress?(address: string): void
  /**
   * Connects once.
   * @param signal Aborts when the attempt takes too long, and when the node stops.
   * @throws {WebMQError} `E_BROKER_REFUSED` when another attempt would fail too: credentials, permissions, a missing
   *   name. After any other error the caller tries again.
   */
  connect(context: LinkContext, events: LinkEvents, signal: AbortSignal): Promise<Link>
}
