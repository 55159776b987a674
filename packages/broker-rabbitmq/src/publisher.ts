import { type ConfirmChannel, IllegalOperationError, type Options } from 'amqplib'
import { WebMQError } from 'webmq-client/protocol'
import { type LinkMessage, Liveness } from 'webmq-server/brokers'
import { type AmqpConnection, type RabbitmqLinkOptions, watchChannel } from './connection.js'
import { maxMessageBytesOf } from './errors.js'
import { encodeLogHeader, LOG_HEADER } from './log-record.js'
import {
  type AttributesForm,
  BINARY_TYPE,
  encodeMessageId,
  MARKER_TYPE,
  TEXT_TYPE,
  withAttributes,
} from './message-properties.js'

/** RabbitMQ has no words of its own for a `basic.nack`. Clients see these. */
const REJECTED = 'it refused the message: a queue that gets it is full, or has failed'

/**
 * The publishing half of a link. It has a connection of its own: a broker that runs out of memory stops reading from
 * connections that publish, and consuming must go on.
 */
export class Publisher {
  readonly #connection: AmqpConnection
  readonly #channel: ConfirmChannel
  readonly #options: RabbitmqLinkOptions
  readonly #liveness: Liveness
  #logHeaders: Readonly<Record<string, string>> = {}
  readonly #hasByteHeaders: boolean
  #isBlocked = false
  #isStopped = false

  /** Declares the exchange, and begins. */
  static async open(connection: AmqpConnection, options: RabbitmqLinkOptions): Promise<Publisher> {
    const channel = await connection.model.createConfirmChannel()
    watchChannel(channel, (cause) => {
      // What waits is sent again over the next link, which would end by the same message.
      options.sizes.maxBytes = maxMessageBytesOf(cause) ?? Number.POSITIVE_INFINITY
      options.events.lost(cause)
    })
    // Durable, and never deleted by us: queues of other programs are bound to it.
    await channel.assertExchange(options.context.namespace, 'topic', { durable: true })
    const publisher = new Publisher(connection, channel, options)
    connection.watchBlocked((isBlocked, reason) => publisher.#blocked(isBlocked, reason))
    return publisher
  }

  private constructor(connection: AmqpConnection, channel: ConfirmChannel, options: RabbitmqLinkOptions) {
    this.#connection = connection
    this.#channel = channel
    this.#options = options
    this.#hasByteHeaders = connection.hasByteHeaders
    this.#liveness = new Liveness({
      intervalMs: options.context.heartbeatMs,
      probe: () => this.#probe(),
      silent: (detail) => options.events.lost(new Error(`publishing: ${detail}`)),
    })
  }

  /** Sends a marker into the queue; returns `false` while the broker takes no messages. A connection that sends while the broker is short of memory is no longer read. */
  mark(queue: string, marker: string): boolean {
    if (this.#isBlocked) return false
    try {
      this.#channel.sendToQueue(queue, Buffer.alloc(0), { type: MARKER_TYPE, correlationId: marker })
    } catch (cause) {
      // The channel has ended, which is reported where it is watched.
      if (!(cause instanceof IllegalOperationError)) throw cause
    }
    return true
  }

  publish(message: LinkMessage): void {
    if (this.#isStopped) return
    const { sequence, key, payload } = message
    const { maxBytes } = this.#options.sizes
    if (payload.length > maxBytes) {
      const detail = `${payload.length} bytes, and RabbitMQ takes ${maxBytes} (max_message_size)`
      this.#refuse(sequence, new WebMQError('E_PAYLOAD_TOO_LARGE', { detail }))
      return
    }
    const content = Buffer.from(payload.buffer, payload.byteOffset, payload.length)
    // What is sent in a turn of the event loop goes out together. No gain with TLS.
    this.#connection.sockets.batch()
    try {
      this.#channel.publish(this.#options.context.namespace, key, content, this.#propertiesOf(message), (error) => {
        this.#settled(sequence, error)
      })
    } catch (cause) {
      // The channel has ended, which is reported where it is watched. Other errors mean that amqplib cannot encode it.
      if (!(cause instanceof IllegalOperationError)) this.#refuse(sequence, cause as Error)
    }
  }

  stop(): void {
    this.#isStopped = true
    this.#liveness.stop()
  }

  #propertiesOf(message: LinkMessage): Options.Publish {
    const { attributes } = message
    const headers = message.isLogged ? this.#headersForLog() : undefined
    return {
      contentType: message.isBinary ? BINARY_TYPE : TEXT_TYPE,
      // For the durable queues of other programs. It costs nothing where there are none: with ours alone 60,000 messages
      // took 49 to 60 µs of the broker's CPU each, and 58 to 60 when not persistent.
      persistent: true,
      messageId: encodeMessageId(this.#options.context.node, message),
      headers: attributes === undefined ? headers : withAttributes(headers, attributes, this.#formFor(message)),
    }
  }

  #formFor({ isLogged }: LinkMessage): AttributesForm {
    if (!isLogged) return 'bytes'
    return this.#hasByteHeaders ? 'both' : 'text'
  }

  /** The same object for all messages of a millisecond: amqplib makes it a prototype, which is slow for a new one. */
  #headersForLog(): Readonly<Record<string, string>> {
    const header = encodeLogHeader(this.#options.cursor.epoch, Date.now())
    if (this.#logHeaders[LOG_HEADER] !== header) this.#logHeaders = { [LOG_HEADER]: header }
    return this.#logHeaders
  }

  #settled(sequence: number, error: Error | null): void {
    if (this.#isStopped) return
    this.#liveness.alive()
    if (error === null) this.#options.events.confirmed(sequence, false)
    else this.#refuse(sequence, new WebMQError('E_BROKER_UNAVAILABLE', { detail: REJECTED }))
  }

  /**
   * A queue is full and rejects the message, or its process died. amqplib reports the end of a channel in the same way,
   * just before the `close` event: then the link is lost by the time of the report, and the message stays unanswered.
   */
  #refuse(sequence: number, cause: Error): void {
    setImmediate(() => {
      if (!this.#isStopped) this.#options.events.refused(sequence, cause)
    })
  }

  /** Fails, and ends the channel, if somebody has deleted the exchange. */
  #probe(): void {
    this.#channel.checkExchange(this.#options.context.namespace).then(
      () => this.#liveness.alive(),
      // The channel has ended, which is reported where it is watched.
      () => undefined,
    )
  }

  #blocked(isBlocked: boolean, reason?: string): void {
    if (this.#isStopped) return
    this.#isBlocked = isBlocked
    // The broker does not read from this connection now, and answers nothing. It still sends AMQP heartbeats.
    this.#liveness.isPaused = isBlocked
    this.#options.events.blocked(isBlocked, reason)
  }
}
