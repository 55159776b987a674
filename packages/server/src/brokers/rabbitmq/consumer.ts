import { randomBytes } from 'node:crypto'
import type { Channel, ConsumeMessage } from 'amqplib/callback_api'
import { isKey } from 'webmq-client/protocol'
import type { LinkContext, LinkDelivery } from '../remote/link.js'
import { type AmqpConnection, called, watchChannel } from './amqp-connection.js'
import { BINARY_TYPE, kindOf, SourceReader } from './message-properties.js'
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
  readonly #events: ConsumerEvents
  readonly #pulse: Pulse
  readonly #sources = new SourceReader()
  #unacked: ConsumeMessage | undefined
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
    const bindings = await QueueBindings.open(connection, { queue, exchange: namespace, lost: events.lost })
    const consumer = new Consumer(connection, channel, bindings, heartbeatMs, events)
    await called((done) => channel.prefetch(PREFETCH_COUNT, false, done))
    await consume(channel, queue, false, (message) => {
      if (message === null) events.lost(new Error('its queue was deleted'))
      else consumer.#take(message)
    })
    await consume(channel, overflow, true, () => {
      events.lost(new Error(`the node did not keep up: its queue was full and has dropped messages`))
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
    this.#events = events
    this.#pulse = new Pulse({
      intervalMs: heartbeatMs,
      ask: () =>
        bindings
          .settled()
          .then(() => this.#pulse.heard())
          .catch(() => undefined),
      silent: (detail) => events.lost(new Error(`consuming: ${detail}`)),
    })
  }

  bind(pattern: string): Promise<void> {
    return this.#bindings.bind(pattern)
  }

  unbind(pattern: string): Promise<void> {
    return this.#bindings.unbind(pattern)
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

  #take(message: ConsumeMessage): void {
    if (this.#isStopped) return
    this.#pulse.heard()
    this.#unacked = message
    if (++this.#unackedCount >= ACK_EVERY_COUNT) this.#ack()
    else this.#ackTimer ??= setTimeout(() => this.#ack(), ACK_AFTER_MS)
    this.#deliver(message)
  }

  #ack(): void {
    clearTimeout(this.#ackTimer)
    this.#ackTimer = undefined
    this.#unackedCount = 0
    if (this.#unacked !== undefined && !this.#isStopped) this.#channel.ack(this.#unacked, true)
    this.#unacked = undefined
  }

  #deliver({ fields, properties, content }: ConsumeMessage): void {
    const { routingKey: key } = fields
    const source = this.#sources.read(properties.messageId, key)
    // A node has checked what it published.
    if (source !== undefined) {
      this.#events.deliver({ key, payload: content, isBinary: properties.contentType === BINARY_TYPE, source })
      return
    }
    const kind = kindOf(properties, content)
    if (!isKey(key)) this.#events.malformed(`${JSON.stringify(key)} is no key`)
    else if (kind === 'malformed') this.#events.malformed(`${key}: the text is not valid UTF-8`)
    else this.#events.deliver({ key, payload: content, isBinary: kind === 'binary', source: undefined })
  }
}

/** Not durable: it ends with the connection anyway. */
function declareQueue(channel: Channel, queue: string, limits: Readonly<Record<string, string | number>>) {
  const options = { exclusive: true, autoDelete: true, durable: false, arguments: limits }
  return called((done) => channel.assertQueue(queue, options, done))
}

function consume(channel: Channel, queue: string, noAck: boolean, take: (message: ConsumeMessage | null) => void) {
  return called((done) => channel.consume(queue, take, { noAck, exclusive: true }, done))
}
