import type { Channel, ConsumeMessage } from 'amqplib'
import { WebMQError } from 'webmq-client/protocol'
import { type Deferred, deferred } from '../../base/deferred.js'
import type { PatternBinder } from './bounded-bindings.js'
import { type AmqpConnection, watchChannel } from './connection.js'
import { ACCESS_REFUSED, replyCodeOf } from './errors.js'
import type { RabbitmqLink } from './link.js'
import { keyHash } from './message-properties.js'

/** Type of the messages that this node sends to its own queue. */
export const MARKER_TYPE = 'webmq-bound'

/** A channel takes one change at a time: each is a round trip. */
interface Lane {
  channel: Channel | undefined
  /** Settles when its last change is made. */
  last: Promise<void>
}

/**
 * More channels gain nothing: RabbitMQ 4 takes 0.5 ms of its own for a binding. 2,000 of them took 1.9 to 2.4 s over one
 * channel, 1.3 to 1.7 s over four, and a round trip each less on a slow network.
 */
const LANES = 4

/**
 * Binds a queue to patterns, over several channels. An `unbind` is made behind all changes before it, and before all that
 * follow: a broader pattern must be bound before the narrower ones, which it replaces, are not. Binds in between have no
 * order.
 *
 * The answer to a bind overtakes messages that are still in the queue. These may be from an earlier binding of the same
 * pattern, and messages that were published since that was removed are missing behind them. So a bind is live when a marker, which
 * follows it into the queue, has come out: all older messages came before.
 *
 * It has channels of its own: a broker that forbids a pattern (topic permissions) closes the channel to say so. The next
 * change then opens another.
 */
export class QueueBindings implements PatternBinder {
  readonly #connection: AmqpConnection
  readonly #queue: string
  readonly #link: RabbitmqLink
  /** Settles when the last `unbind` is made. */
  #unbound: Promise<void> = Promise.resolve()
  readonly #lanes = Array.from({ length: LANES }, (): Lane => ({ channel: undefined, last: Promise.resolve() }))
  /** Binds whose marker is in the queue, by its number. */
  readonly #marked = new Map<string, Deferred<void>>()
  #markerCount = 0
  #isStopped = false

  constructor(connection: AmqpConnection, queue: string, link: RabbitmqLink) {
    this.#connection = connection
    this.#queue = queue
    this.#link = link
  }

  /** @throws {WebMQError} `E_BROKER_REFUSED` when the broker forbids it. */
  bind(pattern: string): Promise<void> {
    return this.#change(true, pattern)
  }

  unbind(pattern: string): Promise<void> {
    return this.#change(false, pattern)
  }

  /** Takes a message of the queue, if it is a marker; returns whether it is one. */
  takeMarker({ fields, properties }: ConsumeMessage): boolean {
    if (fields.exchange !== '' || properties.type !== MARKER_TYPE) return false
    this.#marked.get(properties.correlationId)?.resolve()
    this.#marked.delete(properties.correlationId)
    return true
  }

  /** The broker takes no messages: markers under way come late, and binds do not wait for them. */
  giveUpMarkers(): void {
    for (const made of this.#marked.values()) made.resolve()
    this.#marked.clear()
  }

  /** Sends nothing more; changes that wait stay unanswered. */
  stop(): void {
    this.#isStopped = true
  }

  #change(isBind: boolean, pattern: string): Promise<void> {
    const made = deferred()
    const lane = this.#lanes[keyHash(pattern) % LANES] as Lane
    const before = isBind ? [lane.last, this.#unbound] : this.#lanes.map(({ last }) => last)
    lane.last = Promise.all(before)
      .then(() => this.#make(lane, isBind, pattern, made))
      .catch(this.#link.events.lost)
    if (!isBind) this.#unbound = lane.last
    return made.promise
  }

  async #make(lane: Lane, isBind: boolean, pattern: string, made: Deferred<void>): Promise<void> {
    if (this.#isStopped) return
    const queue = this.#queue
    const exchange = this.#link.options.context.namespace
    lane.channel ??= await this.#open()
    try {
      if (isBind) await lane.channel.bindQueue(queue, exchange, pattern)
      else await lane.channel.unbindQueue(queue, exchange, pattern)
    } catch (cause) {
      if (replyCodeOf(cause) !== ACCESS_REFUSED) throw cause
      lane.channel = undefined
      made.reject(new WebMQError('E_BROKER_REFUSED', { detail: `rabbitmq forbids ${pattern}`, cause }))
      return
    }
    this.#link.alive()
    if (isBind) this.#mark(made)
    else made.resolve()
  }

  #mark(made: Deferred<void>): void {
    const marker = String(++this.#markerCount)
    if (this.#link.mark(this.#queue, marker)) this.#marked.set(marker, made)
    else made.resolve()
  }

  async #open(): Promise<Channel> {
    const channel = await this.#connection.model.createChannel()
    watchChannel(channel, (cause) => {
      // The call that the broker forbids tells its caller.
      if (replyCodeOf(cause) !== ACCESS_REFUSED) this.#link.events.lost(cause)
    })
    return channel
  }
}
