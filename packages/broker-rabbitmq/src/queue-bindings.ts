import type { Channel, ConsumeMessage } from 'amqplib'
import { WebMQError } from 'webmq-client/protocol'
import { type Deferred, deferred, type Liveness } from 'webmq-server/brokers'
import { bindingOf } from './binding-of.js'
import { type AmqpConnection, watchChannel } from './connection.js'
import { ACCESS_REFUSED, PRECONDITION_FAILED, replyCodeOf } from './errors.js'
import { keyHash, MARKER_TYPE } from './message-properties.js'
import type { Publisher } from './publisher.js'
import type { QueueEmptied } from './queue-emptied.js'

/** A topic permission forbids the pattern, or RabbitMQ itself: any other error ends the link. */
const FORBIDDEN: readonly (number | undefined)[] = [ACCESS_REFUSED, PRECONDITION_FAILED]

export interface QueueBindingsOptions {
  readonly connection: AmqpConnection
  readonly queue: string
  readonly exchange: string
  /** Sends the markers. */
  readonly publisher: Publisher
  readonly emptied: QueueEmptied
  /** Hears of each answer. */
  readonly liveness: Liveness
  readonly lost: (cause: Error) => void
}

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
 * follows it into the queue, has come out: all older messages came before. While the broker takes no messages, it is live
 * when the queue has been empty.
 *
 * It has channels of its own: a broker that forbids a pattern (topic permissions) closes the channel to say so. The next
 * change then opens another.
 */
export class QueueBindings {
  readonly #options: QueueBindingsOptions
  /** Settles when the last `unbind` is made. */
  #unbound: Promise<void> = Promise.resolve()
  readonly #lanes = Array.from({ length: LANES }, (): Lane => ({ channel: undefined, last: Promise.resolve() }))
  /** Binds whose marker is in the queue, by its number. */
  readonly #marked = new Map<string, Deferred<void>>()
  #markerCount = 0
  #isStopped = false

  constructor(options: QueueBindingsOptions) {
    this.#options = options
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

  /** The broker takes no messages: markers under way come late. What waits for one waits for an empty queue instead. */
  giveUpMarkers(): void {
    for (const made of this.#marked.values()) this.#options.emptied.wait(made)
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
      .catch(this.#options.lost)
    if (!isBind) this.#unbound = lane.last
    return made.promise
  }

  async #make(lane: Lane, isBind: boolean, pattern: string, made: Deferred<void>): Promise<void> {
    if (this.#isStopped) return
    const { queue, exchange } = this.#options
    lane.channel ??= await this.#open()
    try {
      if (isBind) await lane.channel.bindQueue(queue, exchange, pattern)
      else await lane.channel.unbindQueue(queue, exchange, pattern)
    } catch (cause) {
      if (!FORBIDDEN.includes(replyCodeOf(cause))) throw cause
      lane.channel = undefined
      made.reject(new WebMQError('E_BROKER_REFUSED', { detail: `rabbitmq forbids ${pattern}`, cause }))
      return
    }
    this.#options.liveness.alive()
    if (isBind) this.#mark(made)
    else made.resolve()
  }

  #mark(made: Deferred<void>): void {
    const marker = String(++this.#markerCount)
    if (this.#options.publisher.mark(this.#options.queue, marker)) this.#marked.set(marker, made)
    else this.#options.emptied.wait(made)
  }

  async #open(): Promise<Channel> {
    const channel = await this.#options.connection.model.createChannel()
    watchChannel(channel, (cause) => {
      // The call that the broker forbids tells its caller.
      if (!FORBIDDEN.includes(replyCodeOf(cause))) this.#options.lost(cause)
    })
    return channel
  }
}

const EVERYTHING = '#'

/**
 * Binds patterns one by one while they are few, and everything when they are many. The node then drops what nobody wants.
 *
 * RabbitMQ takes 0.5 to 2 ms for a binding, one after the other for all of its nodes, and as long again to remove it. With
 * tens of thousands, for example one per user, a node would take minutes to come back and would hold up the others.
 */
export class BoundedBindings {
  readonly #bindings: Pick<QueueBindings, 'bind' | 'unbind'>
  readonly #maxCount: number
  /** Bindings, with the number of patterns that need each. */
  readonly #wanted = new Map<string, number>()
  /** Bound one by one, or about to be. */
  readonly #exact = new Set<string>()
  /** Resolves when everything is bound; `undefined` while patterns are bound one by one. */
  #everything: Promise<void> | undefined
  /** The broker forbids it (topic permissions). */
  #isForbidden = false

  /** @param maxCount Patterns that are bound one by one. From more it returns to that when they are half as many. */
  constructor(bindings: Pick<QueueBindings, 'bind' | 'unbind'>, maxCount: number) {
    this.#bindings = bindings
    this.#maxCount = maxCount
  }

  bind(pattern: string): Promise<void> {
    const binding = bindingOf(pattern)
    this.#wanted.set(binding, (this.#wanted.get(binding) ?? 0) + 1)
    if (this.#wanted.size <= this.#maxCount && this.#everything === undefined) return this.#bindExact(binding)
    return this.#bindWide(binding)
  }

  unbind(pattern: string): Promise<void> {
    const binding = bindingOf(pattern)
    const count = this.#wanted.get(binding) ?? 0
    if (count > 1) {
      this.#wanted.set(binding, count - 1)
      return Promise.resolve()
    }
    this.#wanted.delete(binding)
    const isBound = this.#exact.delete(binding) && !(binding === EVERYTHING && this.#everything !== undefined)
    const unbound = isBound ? this.#bindings.unbind(binding) : Promise.resolve()
    if (this.#everything !== undefined && this.#wanted.size * 2 <= this.#maxCount) this.#narrow()
    return unbound
  }

  #bindExact(pattern: string): Promise<void> {
    this.#exact.add(pattern)
    return this.#bindings.bind(pattern)
  }

  async #bindWide(pattern: string): Promise<void> {
    if (this.#isForbidden) return await this.#bindExact(pattern)
    this.#everything ??= this.#bindings.bind(EVERYTHING)
    try {
      await this.#everything
    } catch (error) {
      if (!(error instanceof WebMQError) || error.code !== 'E_BROKER_REFUSED') throw error
      this.#isForbidden = true
      this.#everything = undefined
      if (this.#wanted.has(pattern)) await this.#bindExact(pattern)
    }
  }

  /** Binds one by one what is left, then unbinds everything else. */
  #narrow(): void {
    this.#everything = undefined
    const binds = [...this.#wanted.keys()]
      .filter((pattern) => !this.#exact.has(pattern))
      .map((pattern) => this.#bindExact(pattern))
    Promise.all(binds)
      .then(async () => {
        if (this.#everything === undefined && !this.#wanted.has(EVERYTHING)) await this.#bindings.unbind(EVERYTHING)
      })
      // A failure leaves everything bound: more than is wanted. The loss of the link is reported where it is watched.
      .catch(() => undefined)
  }
}
