import { randomBytes } from 'node:crypto'
import type { Channel, ConsumeMessage } from 'amqplib/callback_api'
import { isKey } from 'webmq-client/protocol'
import type { LinkContext, LinkDelivery } from '../remote/link.js'
import { type AmqpConnection, called, numberOf, watchChannel } from './amqp-connection.js'
import { BoundedBindings } from './bounded-bindings.js'
import { DeliveryReader } from './delivery-reader.js'
import { kindOf, ownKindOf, SourceReader } from './message-properties.js'
import { Pulse } from './pulse.js'
import { QueueBindings } from './queue-bindings.js'

/** What a consumer tells. */
export interface ConsumerEvents {
  deliver(delivery: LinkDelivery): void
  malformed(detail: string): void
  lost(cause: Error): void
}

/** Messages that may be on their way to the node, or waiting for its next acknowledgement. */
const PREFETCH_COUNT = 1_000
const ACK_EVERY_COUNT = 250
/** What came is acknowledged after this at the latest; nothing hangs on it but memory of the broker. */
const ACK_AFTER_MS = 100
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
const NO_BYTES = Buffer.alloc(0)

/**
 * The half of a link that consumes: one queue of its own, which ends with its connection.
 *
 * A queue that is full drops its oldest messages, in silence; so they are dead-lettered, to a second queue that keeps one of
 * them: when there is one, something was dropped, and the link ends, so that listeners are told of the gap.
 */
export class Consumer {
  readonly #connection: AmqpConnection
  readonly #channel: Channel
  readonly #bindings: QueueBindings
  readonly #patterns: BoundedBindings
  readonly #events: ConsumerEvents
  readonly #pulse: Pulse
  readonly #sources = new SourceReader()
  /** Of the last message that came. */
  #deliveryTag = 0
  #unackedCount = 0
  #ackTimer: NodeJS.Timeout | undefined
  #isStopped = false

  /** Declares the queue. The exchange must be there. */
  static async open(connection: AmqpConnection, context: LinkContext, events: ConsumerEvents): Promise<Consumer> {
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
    const consumer: Consumer = new Consumer(connection, channel, bindings, heartbeatMs, events)
    await called((done) => channel.prefetch(PREFETCH_COUNT, false, done))
    const reader = new DeliveryReader({
      channel: numberOf(channel),
      consumerTag: MESSAGES_TAG,
      sources: consumer.#sources,
      take: (deliveryTag, delivery) => consumer.#take(deliveryTag, delivery),
    })
    connection.readFirst((bytes) => reader.read(bytes))
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
    heartbeatMs: number,
    events: ConsumerEvents,
  ) {
    this.#connection = connection
    this.#channel = channel
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
    return this.#patterns.bind(pattern)
  }

  unbind(pattern: string): Promise<void> {
    return this.#patterns.unbind(pattern)
  }

  /** Sends and watches nothing more. */
  stop(): void {
    this.#pulse.stop()
    this.#bindings.stop()
    clearTimeout(this.#ackTimer)
    this.#isStopped = true
  }

  async close(): Promise<void> {
    this.stop()
    await this.#connection.close()
  }

  /** Takes what amqplib has read. */
  #takeAny({ fields, properties, content }: ConsumeMessage): void {
    const { deliveryTag, routingKey: key } = fields
    const id = typeof properties.messageId === 'string' ? Buffer.from(properties.messageId) : NO_BYTES
    const source = this.#sources.read(id, 0, id.length, key)
    const kind = source === undefined ? kindOf(properties, content) : ownKindOf(properties)
    // A node has checked what it published.
    const isMessage = source !== undefined || (isKey(key) && kind !== 'malformed')
    this.#take(deliveryTag, isMessage ? { key, payload: content, isBinary: kind === 'binary', source } : undefined)
    if (!isMessage) this.#events.malformed(`${JSON.stringify(key)} is no key, or its text not valid UTF-8`)
  }

  /** @param delivery `undefined`: acknowledged, and no more. */
  #take(deliveryTag: number, delivery: LinkDelivery | undefined): void {
    if (this.#isStopped) return
    this.#pulse.heard()
    this.#deliveryTag = deliveryTag
    if (++this.#unackedCount >= ACK_EVERY_COUNT) this.#ack()
    else this.#ackTimer ??= setTimeout(() => this.#ack(), ACK_AFTER_MS)
    if (delivery !== undefined) this.#events.deliver(delivery)
  }

  #ack(): void {
    clearTimeout(this.#ackTimer)
    this.#ackTimer = undefined
    if (this.#unackedCount > 0 && !this.#isStopped) {
      // All that amqplib looks at.
      const message = { fields: { deliveryTag: this.#deliveryTag } } as ConsumeMessage
      this.#channel.ack(message, true)
    }
    this.#unackedCount = 0
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
