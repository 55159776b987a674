import type { ConfirmChannel } from 'amqplib/callback_api'
import type { LinkContext, LinkMessage } from '../remote/link.js'
import { type AmqpConnection, called, numberOf, watchChannel } from './amqp-connection.js'
import { Confirms } from './confirms.js'
import { PublishFrames } from './publish-frames.js'
import { Pulse } from './pulse.js'

/** What a publisher needs to know of its node, and of the log: the epoch that messages for it carry. */
export interface PublisherContext extends LinkContext {
  readonly epoch: () => string
}

/** What a publisher tells. */
export interface PublisherEvents {
  confirmed(sequence: number, isCumulative: boolean): void
  refused(sequence: number, cause: Error): void
  blocked(isBlocked: boolean, reason?: string): void
  lost(cause: Error): void
}

interface Confirmation {
  readonly deliveryTag: number
  readonly multiple: boolean
}

/**
 * The half of a link that publishes: a connection of its own, because a broker that runs out of memory stops reading from
 * connections that publish, and what is consumed must go on.
 */
export class Publisher {
  readonly #connection: AmqpConnection
  readonly #events: PublisherEvents
  readonly #confirms = new Confirms()
  readonly #frames: PublishFrames
  readonly #pulse: Pulse
  #isFlushing = false
  #isStopped = false

  /** Declares the exchange, and begins. */
  static async open(
    connection: AmqpConnection,
    context: PublisherContext,
    events: PublisherEvents,
  ): Promise<Publisher> {
    const channel = await connection.openConfirmChannel()
    watchChannel(channel, events.lost)
    // Durable, and never deleted by us: queues of others are bound to it.
    await called((done) => channel.assertExchange(context.namespace, 'topic', { durable: true }, done))
    return new Publisher(connection, channel, context, events)
  }

  private constructor(
    connection: AmqpConnection,
    channel: ConfirmChannel,
    { namespace, node, heartbeatMs, epoch }: PublisherContext,
    events: PublisherEvents,
  ) {
    this.#connection = connection
    this.#events = events
    this.#frames = new PublishFrames({
      channel: numberOf(channel),
      exchange: namespace,
      node,
      frameMaxBytes: connection.frameMaxBytes,
      write: (bytes) => connection.send(bytes),
      epoch,
    })
    // amqplib's own listeners look for a callback per message; there are none.
    channel.removeAllListeners('ack')
    channel.removeAllListeners('nack')
    channel.on('ack', (confirmation) => this.#acked(confirmation))
    channel.on('nack', (confirmation) => this.#nacked(confirmation))
    this.#pulse = new Pulse({
      intervalMs: heartbeatMs,
      // Fails, and with it the channel, if somebody has deleted the exchange.
      ask: () => channel.checkExchange(namespace, (error) => error ?? this.#pulse.heard()),
      silent: (detail) => events.lost(new Error(`publishing: ${detail}`)),
    })
    connection.model.on('blocked', (reason) => this.#blocked(true, reason))
    connection.model.on('unblocked', () => this.#blocked(false))
  }

  publish(message: LinkMessage): void {
    this.#confirms.published(message.sequence)
    this.#frames.add(message)
    if (this.#isFlushing) return
    this.#isFlushing = true
    setImmediate(() => {
      this.#isFlushing = false
      if (!this.#isStopped) this.#frames.flush()
    })
  }

  /** Sends and watches nothing more. */
  stop(): void {
    this.#isStopped = true
    this.#pulse.stop()
  }

  async close(): Promise<void> {
    this.stop()
    await this.#connection.close()
  }

  #acked({ deliveryTag, multiple }: Confirmation): void {
    if (this.#isStopped) return
    this.#pulse.heard()
    const sequence = this.#confirms.sequenceOf(deliveryTag)
    if (multiple) this.#confirms.settle(deliveryTag)
    if (sequence !== undefined) this.#events.confirmed(sequence, multiple)
  }

  /** A queue did not take the message: it is full and rejects, or its process died. */
  #nacked({ deliveryTag, multiple }: Confirmation): void {
    if (this.#isStopped) return
    this.#pulse.heard()
    const sequences = multiple
      ? [...this.#confirms.sequencesUpTo(deliveryTag)]
      : [this.#confirms.sequenceOf(deliveryTag)]
    if (multiple) this.#confirms.settle(deliveryTag)
    for (const sequence of sequences) {
      if (sequence !== undefined) this.#events.refused(sequence, new Error('a queue rejects it'))
    }
  }

  #blocked(isBlocked: boolean, reason?: string): void {
    if (this.#isStopped) return
    // The broker does not read from this connection now, and answers nothing; the heartbeats of AMQP, which it sends, go on.
    this.#pulse.isPaused = isBlocked
    this.#events.blocked(isBlocked, reason)
  }
}
