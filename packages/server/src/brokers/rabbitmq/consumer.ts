import { randomBytes } from 'node:crypto'
import type { Channel, ConsumeMessage } from 'amqplib/callback_api'
import type { HistoryRules } from '../../ports/history-rules.js'
import type { LinkContext, LinkDelivery } from '../remote/link.js'
import { Acks, PREFETCH_COUNT } from './acks.js'
import { type AmqpConnection, called, numberOf, watchChannel } from './amqp-connection.js'
import { BoundedBindings } from './bounded-bindings.js'
import { DeliveryReader } from './delivery-reader.js'
import { deliveryOf, SourceReader } from './message-properties.js'
import { Pulse } from './pulse.js'
import { QueueBindings } from './queue-bindings.js'

/** What a consumer tells. */
export interface ConsumerEvents {
  deliver(delivery: LinkDelivery): void
  malformed(detail: string): void
  /** A message came that comes by the log too. */
  surplus(): void
  lost(cause: Error): void
}

/**
 * What may wait at the broker for a node that does not keep up: the memory of the broker is that of all nodes. An operator may set less
 * by a policy.
 */
const MAX_QUEUE_BYTES = 128 * 1024 * 1024
/** Counts, as payloads may be empty. */
const MAX_QUEUE_COUNT = 250_000
const QUEUE_ID_BYTES = 4
/** Patterns that are bound one by one. */
const MAX_PATTERNS = 2_000
const MESSAGES_TAG = 'messages'
const OVERFLOW_TAG = 'overflow'

/**
 * The half of a link that consumes: one queue of its own, which ends with its connection.
 *
 * A queue that is full drops its oldest messages, in silence; so they are dead-lettered, to a second queue that keeps one of
 * them: when there is one, something was dropped, and the link ends, so that listeners are told of the gap.
 */
export class Consumer {
  readonly #connection: AmqpConnection
  readonly #acks: Acks
  /** Keys that come by the log; `undefined` without one. */
  readonly #logged: HistoryRules | undefined
  readonly #bindings: QueueBindings
  readonly #patterns: BoundedBindings
  readonly #events: ConsumerEvents
  readonly #pulse: Pulse
  readonly #sources = new SourceReader()
  #isStopped = false

  /**
   * Declares the queue. The exchange must be there.
   * @param logged What comes by the log, and is not wanted here; `undefined` without a log.
   */
  static async open(
    connection: AmqpConnection,
    context: LinkContext,
    logged: HistoryRules | undefined,
    events: ConsumerEvents,
  ): Promise<Consumer> {
    const channel = await connection.openChannel()
    watchChannel(channel, events.lost)
    const { namespace, node, heartbeatMs } = context
    // Different for every link: the queue of the last one is there until the broker knows that its connection is gone.
    const queue = `${namespace}.node.${node}.${randomBytes(QUEUE_ID_BYTES).toString('hex')}`
    const overflow = `${queue}.overflow`
    await declareQueue(channel, overflow, { 'x-max-length': 1 })
    await declareQueue(channel, queue, {
      'x-max-length-bytes': MAX_QUEUE_BYTES,
      'x-max-length': MAX_QUEUE_COUNT,
      'x-dead-letter-exchange': '',
      'x-dead-letter-routing-key': overflow,
    })
    const bindings = await QueueBindings.open(connection, {
      queue,
      exchange: namespace,
      heard: () => consumer.#pulse.heard(),
      lost: events.lost,
    })
    const consumer: Consumer = new Consumer(connection, channel, bindings, logged, heartbeatMs, events)
    await called((done) => channel.prefetch(PREFETCH_COUNT, false, done))
    const reader = new DeliveryReader({
      channel: numberOf(channel),
      consumerTag: MESSAGES_TAG,
      sources: consumer.#sources,
      take: (deliveryTag, delivery) => consumer.#take(deliveryTag, delivery),
    })
    connection.readFirst(reader)
    await consume(channel, queue, { consumerTag: MESSAGES_TAG, noAck: false }, (message) => {
      if (message === null) events.lost(new Error('its queue was deleted'))
      else consumer.#takeAny(message)
    })
    await consume(channel, overflow, { consumerTag: OVERFLOW_TAG, noAck: true }, () => {
      events.lost(new Error('the node did not keep up: its queue was full and has dropped messages'))
    })
    return consumer
  }

  private constructor(
    connection: AmqpConnection,
    channel: Channel,
    bindings: QueueBindings,
    logged: HistoryRules | undefined,
    heartbeatMs: number,
    events: ConsumerEvents,
  ) {
    this.#connection = connection
    this.#acks = new Acks(channel)
    this.#logged = logged
    this.#bindings = bindings
    this.#patterns = new BoundedBindings(bindings, MAX_PATTERNS)
    this.#events = events
    this.#pulse = new Pulse({
      intervalMs: heartbeatMs,
      // If the channel has ended, that is seen to where it is watched.
      ask: () => bindings.ask().catch(() => undefined),
      silent: (detail) => events.lost(new Error(`consuming: ${detail}`)),
    })
  }

  bind(pattern: string): Promise<void> {
    return this.#comesByLog(pattern) ? Promise.resolve() : this.#patterns.bind(pattern)
  }

  unbind(pattern: string): Promise<void> {
    return this.#comesByLog(pattern) ? Promise.resolve() : this.#patterns.unbind(pattern)
  }

  /** The broker has answered, on whichever channel. */
  heard(): void {
    this.#pulse.heard()
  }

  /** Sends and watches nothing more. */
  stop(): void {
    this.#pulse.stop()
    this.#bindings.stop()
    this.#acks.stop()
    this.#isStopped = true
  }

  async close(): Promise<void> {
    this.stop()
    await this.#connection.close()
  }

  /** Whether all that the pattern matches is logged. */
  #comesByLog(pattern: string): boolean {
    return this.#logged?.covers(pattern) === true
  }

  /** Takes what amqplib has read. */
  #takeAny(message: ConsumeMessage): void {
    const delivery = deliveryOf(message, this.#sources)
    this.#take(message.fields.deliveryTag, delivery)
    if (delivery === undefined) {
      this.#events.malformed(`${JSON.stringify(message.fields.routingKey)} is no key, or its text not valid UTF-8`)
    }
  }

  /** @param delivery `undefined`: acknowledged, and no more. */
  #take(deliveryTag: number, delivery: LinkDelivery | undefined): void {
    if (this.#isStopped) return
    this.#pulse.heard()
    this.#acks.add(deliveryTag)
    if (delivery === undefined) return
    // Comes by the log.
    if (this.#logged?.ruleOf(delivery.key) !== undefined) this.#events.surplus()
    else this.#events.deliver(delivery)
  }
}

/** Not durable: it ends with the connection anyway. */
function declareQueue(channel: Channel, queue: string, limits: Readonly<Record<string, string | number>>) {
  const options = { exclusive: true, autoDelete: true, durable: false, arguments: limits }
  return called((done) => channel.assertQueue(queue, options, done))
}

function consume(
  channel: Channel,
  queue: string,
  { consumerTag, noAck }: { readonly consumerTag: string; readonly noAck: boolean },
  take: (message: ConsumeMessage | null) => void,
) {
  return called((done) => channel.consume(queue, take, { consumerTag, noAck, exclusive: true }, done))
}
