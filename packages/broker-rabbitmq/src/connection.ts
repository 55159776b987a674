import { addAbortListener } from 'node:events'
import { type Channel, type ChannelModel, type ConsumeMessage, connect } from 'amqplib'
import { type LinkContext, type LinkEvents, OpenedSockets, readTlsFiles } from 'webmq-server/brokers'
import type { HistoryOptions } from 'webmq-server/ports'
import type { RabbitmqAddress, RabbitmqHost } from './address.js'
import type { LogCursor } from './log-cursor.js'

export interface RabbitmqLinkOptions {
  readonly address: RabbitmqAddress
  readonly host: RabbitmqHost
  readonly context: LinkContext
  readonly events: LinkEvents
  readonly history: HistoryOptions
  /** The node's, over all its links. */
  readonly cursor: LogCursor
  /** Patterns that are bound one by one; with more of them the node binds everything. */
  readonly maxPatterns: number
  /** The node's, over all its links: larger messages are not sent. Infinite until a link was lost by one. */
  readonly sizes: { maxBytes: number }
}

/** RabbitMQ detects lost nodes by heartbeats. Its guide warns of false alarms below 5 s. */
const MIN_AMQP_HEARTBEAT_SECONDS = 5

/** At least two heartbeats: a host that takes connections may answer none of them. */
const HANDSHAKE_TIMEOUT_MS = 5_000

/** RabbitMQ's own limit. RabbitMQ 4.1 refuses the 4,096 that amqplib asks for before 0.10.7. */
const FRAME_BYTES = 131_072

/** amqplib stops writing while so much waits: as much goes out with one call of the system. */
const BATCH_BYTES = 262_144

/** 3.13. */
const FIRST_TEXT_VERSION = 3_013

/** One AMQP connection. It never reconnects. */
export class AmqpConnection {
  readonly model: ChannelModel
  /** Destroys the socket: amqplib has no call for that, but hands its socket options to Node. */
  readonly #socket: AbortController
  /** The same socket, unless it is of TLS: amqplib writes each frame by itself. */
  readonly sockets: OpenedSockets
  #isEnded = false

  /**
   * @param signal Ends the attempt, not the connection.
   * @param onEnd Called once, when the connection ends in any way but `close` and `destroy`.
   */
  static async open(
    { address, host, context }: RabbitmqLinkOptions,
    purpose: string,
    signal: AbortSignal,
    onEnd: (cause: Error) => void,
  ): Promise<AmqpConnection> {
    const { vhost, tls } = address
    const secure = tls === undefined ? undefined : await readTlsFiles(tls.files)
    const socket = new AbortController()
    const sockets = new OpenedSockets()
    using _listener = addAbortListener(signal, () => socket.abort(signal.reason))
    const heartbeat = Math.max(MIN_AMQP_HEARTBEAT_SECONDS, Math.ceil(context.heartbeatMs / 1_000))
    const protocol = tls === undefined ? 'amqp' : 'amqps'
    const socketOptions = {
      noDelay: true,
      signal: socket.signal,
      timeout: Math.max(HANDSHAKE_TIMEOUT_MS, 2 * context.heartbeatMs),
      writableHighWaterMark: BATCH_BYTES,
      clientProperties: { connection_name: `webmq-server ${context.namespace} ${context.node} ${purpose}` },
      ...(tls === undefined ? undefined : { ...secure, rejectUnauthorized: tls.isVerified }),
      ...(tls?.servername === undefined ? undefined : { servername: tls.servername }),
    }
    try {
      const model = await sockets.run(() =>
        connect({ ...host, protocol, vhost, heartbeat, frameMax: FRAME_BYTES }, socketOptions),
      )
      return new AmqpConnection(model, socket, sockets, onEnd)
    } finally {
      sockets.end()
    }
  }

  private constructor(
    model: ChannelModel,
    socket: AbortController,
    sockets: OpenedSockets,
    onEnd: (cause: Error) => void,
  ) {
    this.model = model
    this.#socket = socket
    this.sockets = sockets
    const end = (cause?: Error) => {
      if (this.#isEnded) return
      this.#isEnded = true
      onEnd(cause ?? new Error('the connection was closed'))
    }
    // When an operator closes the connection, only `close` is emitted.
    model.on('error', end)
    model.on('close', end)
  }

  /**
   * Whether streams give the bytes of a header back. RabbitMQ 3.13.5 and later declare them as text, and amqplib replaces
   * what is not UTF-8. All of 3.13 counts as that: the servers of a cluster may differ.
   */
  get hasByteHeaders(): boolean {
    const [, major, minor] = /^(\d+)\.(\d+)\./.exec(this.model.connection.serverProperties.version) ?? []
    return major !== undefined && Number(major) * 1_000 + Number(minor) < FIRST_TEXT_VERSION
  }

  /** Reports when the broker stops taking messages from this connection, and when it resumes. */
  watchBlocked(onChange: (isBlocked: boolean, reason?: string) => void): void {
    this.model.on('blocked', (reason) => onChange(true, reason))
    this.model.on('unblocked', () => onChange(false))
  }

  /** Closes in order, once the broker has answered. Never rejects. */
  async close(): Promise<void> {
    const isOpen = !this.#isEnded
    this.#isEnded = true
    // An error means that the connection has ended by itself.
    if (isOpen) await this.model.close().catch(() => undefined)
    this.destroy()
  }

  /** Ends the connection at once: pending calls reject. */
  destroy(): void {
    this.#isEnded = true
    this.#socket.abort(new Error('the connection was given up'))
  }
}

/**
 * Reports once that a channel has ended, and why. The end of a connection also ends its channels, with a less precise
 * cause: whoever watches both hears of the connection first.
 */
export function watchChannel(channel: Channel, onEnd: (cause: Error) => void): void {
  let cause = new Error('the channel was closed')
  channel.on('error', (error) => {
    cause = error
  })
  channel.on('close', () => process.nextTick(() => onEnd(cause)))
}

export function closeChannel(channel: Channel): void {
  // It rejects if the channel has already ended, which is what was wanted.
  channel.close().catch(() => undefined)
}

/** Messages that may be on their way to the node, or waiting for its next acknowledgement. */
export const PREFETCH_COUNT = 1_000
const ACK_EVERY_COUNT = 250
/** Limit for an acknowledgement; only memory of the broker depends on it. */
const ACK_AFTER_MS = 100

/** Acknowledges the messages of a channel, many at once. */
export class Acks {
  readonly #channel: Channel
  #last: ConsumeMessage | undefined
  #count = 0
  #timer: NodeJS.Timeout | undefined
  #isStopped = false

  constructor(channel: Channel) {
    this.#channel = channel
  }

  add(message: ConsumeMessage): void {
    if (this.#isStopped) return
    this.#last = message
    if (++this.#count >= ACK_EVERY_COUNT) this.#ack()
    else this.#timer ??= setTimeout(() => this.#ack(), ACK_AFTER_MS)
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#isStopped = true
  }

  #ack(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#last !== undefined && !this.#isStopped) this.#channel.ack(this.#last, true)
    this.#last = undefined
    this.#count = 0
  }
}
