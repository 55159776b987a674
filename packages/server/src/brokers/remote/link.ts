import type { Accepted, BrokerCapabilities, Position } from '../../ports/broker.js'

/** A message that waits to be accepted, as a {@link Link} gets it. */
export interface LinkMessage {
  /** Counted from 1; a link sends in this order. One that a link did not confirm before it was lost is sent again on the next. */
  readonly sequence: number
  readonly key: string
  /** Never written again: a link may hand it to its library without a copy. */
  readonly payload: Uint8Array
  readonly isBinary: boolean
  /** Handed back on the publishing node alone; see {@link OutboundMessage.publisher}. */
  readonly origin: number | undefined
  /** The payload is that of several messages; only for drivers that take bundles. */
  readonly isBundle?: boolean
  /** Names the message over all nodes: who receives a second one with it drops it, unless the broker has. At most 255 bytes. */
  readonly messageId: string | undefined
  /** It belongs into the log; only for drivers with `history`. */
  readonly isLogged: boolean
}

/** A message that has come over a link. */
export interface LinkDelivery {
  readonly key: string
  /** Valid until the call returns. */
  readonly payload: Uint8Array
  readonly isBinary: boolean
  /**
   * Who published it, and which of its messages it is; `undefined` when it was not published by a WebMQ node. `node` is the
   * {@link LinkContext.node} of that node.
   */
  readonly source: LinkSource | undefined
  /** As in {@link LinkMessage}. */
  readonly messageId?: string | undefined
}

/** A message of the log. */
export interface LoggedDelivery extends LinkDelivery {
  /** Its place: greater than that of any before. */
  readonly offset: number
  /** When it was logged, or published: Unix time in milliseconds. */
  readonly timeMs: number
}

/** A place in the log that a node has come to. */
export interface LogPlace extends Position {
  /** Who published the message that stands there, where that is known: tells a log that has lost its end from one that has not. */
  readonly source: LinkSource | undefined
}

/** Who follows a log. */
export interface LogFollower {
  /**
   * Before the first message, and again, never as continued, when another log begins in its midst.
   * @param start The place that what follows stands after; nothing is missing between it and the first message.
   * @param isContinued It is the place that was asked for, and nothing of it was lost. Otherwise what follows is all there is.
   */
  begins(start: Position, isContinued: boolean): void
  /** In the order of the log, each once. A message that was sent again, or whose id has come before, may be among them. */
  message(delivery: LoggedDelivery): void
}

/** Where a message comes from that a WebMQ node has published. */
export interface LinkSource {
  readonly node: string
  readonly sequence: number
  readonly origin: number | undefined
  /** As in {@link LinkMessage}. */
  readonly isBundle?: boolean
}

/** What a link tells; nothing more once it has told that it is lost. */
export interface LinkEvents {
  /**
   * A message that is not in the log, in the order of arrival. May be one that nobody wants; and, when it has a source, one that has
   * come before, because several subscriptions match it or because it was sent again.
   */
  deliver(delivery: LinkDelivery): void
  /**
   * The broker has accepted this message, or all up to it.
   * @param accepted What it has said of this one.
   */
  confirmed(sequence: number, isCumulative: boolean, accepted?: Accepted): void
  /** The broker has refused this message, and will again. */
  refused(sequence: number, cause: Error): void
  /** Whether the broker takes messages for now. */
  blocked(isBlocked: boolean, reason?: string): void
  /** A message came that is not one of WebMQ's; it was dropped. */
  malformed(detail: string): void
  /** A message came that was not asked for, or that comes by the log; it was dropped. */
  surplus(): void
  /** The broker is no longer reached over this link; `close` is called next. Once. */
  lost(cause: Error): void
}

/** What a driver needs to know of its node. */
export interface LinkContext {
  /** 16 characters of `[0-9a-f]`, different for every start of every node. */
  readonly node: string
  /** Under which nodes meet: the name of an exchange, the first word of channels and subjects. `[A-Za-z0-9_-]{1,64}`. */
  readonly namespace: string
  /** Interval of heartbeats; a link that is silent for two of them is lost. */
  readonly heartbeatMs: number
}

/**
 * One connection to a broker, from when it is established until it is lost or closed. Calls take effect in their order; what is
 * under way when it is lost stays unanswered, or rejects.
 */
export interface Link {
  /**
   * Starts interest in a pattern that has none; resolves when messages that are accepted from then on come over this link. Those of the
   * log come by `follow`, whoever is interested in them.
   * @throws {WebMQError} `E_BROKER_REFUSED` when the broker does not allow it; the link goes on.
   */
  bind(pattern: string): Promise<void>
  /** Ends it; maybe before the bind has resolved. */
  unbind(pattern: string): Promise<void>
  /**
   * Follows the log from the place after this one on, or, without one, from its beginning, until the link is lost: a hole in it is a lost link.
   * Resolves when everything has come that was logged before the call. Called once at most, after all binds; only where there is history.
   */
  follow?(after: LogPlace | undefined, follower: LogFollower): Promise<void>
  /** Sends a message, together with others of the same turn; `confirmed` or `refused` answers. Does not throw. */
  publish(message: LinkMessage): void
  /** Ends the link and what was made for it at the broker, within a bound of time; never rejects. Idempotent. */
  close(): Promise<void>
}

/** What an adapter is: how to get a {@link Link}. All else is done by {@link RemoteBroker}. */
export interface LinkDriver {
  /** Of the adapter: `rabbitmq`. */
  readonly name: string
  readonly capabilities: BrokerCapabilities
  /**
   * Whether a logged message counts as accepted when it has come back by the log, and not by {@link LinkEvents.confirmed}: where the broker does not tell
   * its place.
   */
  readonly confirmsByLog?: boolean
  /** Whether a message may stand for several of the same key. Not where other programs are to see bare payloads. */
  readonly takesBundles: boolean
  /** The broker's address for log and errors, without credentials. */
  readonly address: string
  /**
   * Connects once.
   * @param signal Aborts after the time that an attempt may take, and when the node stops.
   * @throws {WebMQError} `E_BROKER_REFUSED` when trying again is of no use: credentials, permissions, a name that does not exist. Anything
   *   else is tried again.
   */
  connect(context: LinkContext, events: LinkEvents, signal: AbortSignal): Promise<Link>
}
