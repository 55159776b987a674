import type { Channel } from 'amqplib/callback_api'
import { WebMQError } from 'webmq-client/protocol'
import { type AmqpConnection, called, dropReplies, watchChannel } from './amqp-connection.js'
import { ACCESS_REFUSED, replyCodeOf } from './errors.js'

/** Where a {@link QueueBindings} works. */
export interface QueueBindingsOptions {
  readonly queue: string
  readonly exchange: string
  /** The broker has answered. */
  readonly heard: () => void
  readonly lost: (cause: Error) => void
}

/** A pattern to be bound or unbound, and who waits for that. */
interface Change {
  readonly isBind: boolean
  readonly pattern: string
  resolve(): void
  reject(error: unknown): void
}

/** Class 50, methods 20, 50 and 51. */
const QUEUE_BIND = 0x320014
const QUEUE_UNBIND = 0x320032
const QUEUE_UNBIND_OK = 0x320033
/**
 * Changes that go out together. One costs RabbitMQ 0.3 to 1 ms, and it answers nothing else on the channel meanwhile: with all of
 * 30,000 at once it would seem to be gone.
 */
const CHANGES_PER_CALL = 100

/**
 * Binds a queue to patterns. Up to 100 changes go out together, and one call that waits for its answer follows them; amqplib by itself
 * would wait for each.
 *
 * On a channel of its own: the broker may forbid a pattern (topic permissions), and closes the channel to say so. Which of
 * several it was it does not say; they are then made one by one.
 */
export class QueueBindings {
  readonly #connection: AmqpConnection
  readonly #options: QueueBindingsOptions
  #channel: Channel
  /** In order: to be sent; sent and not known to have been made. */
  readonly #waiting: Change[] = []
  #sent: Change[] = []
  #isScheduled = false
  #isRepairing = false
  #isStopped = false

  static async open(connection: AmqpConnection, options: QueueBindingsOptions): Promise<QueueBindings> {
    return new QueueBindings(connection, await connection.openChannel(), options)
  }

  private constructor(connection: AmqpConnection, channel: Channel, options: QueueBindingsOptions) {
    this.#connection = connection
    this.#options = options
    this.#channel = channel
    this.#use(channel)
  }

  /** @throws {WebMQError} `E_BROKER_REFUSED` when the broker forbids it. */
  bind(pattern: string): Promise<void> {
    return this.#change(true, pattern)
  }

  unbind(pattern: string): Promise<void> {
    return this.#change(false, pattern)
  }

  /** Asks the broker for an answer, which is told as `heard`; it comes when everything that was sent before is done. */
  async ask(): Promise<void> {
    await called((done) => this.#channel.checkQueue(this.#options.queue, done))
    this.#options.heard()
  }

  /** Sends nothing more; what waits stays unanswered. */
  stop(): void {
    this.#isStopped = true
  }

  #change(isBind: boolean, pattern: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ isBind, pattern, resolve, reject })
      this.#flushSoon()
    })
  }

  #flushSoon(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#flush()
    })
  }

  #flush(): void {
    if (this.#isStopped || this.#isRepairing || this.#sent.length > 0 || this.#waiting.length === 0) return
    const { queue, exchange } = this.#options
    this.#sent = this.#waiting.splice(0, CHANGES_PER_CALL)
    for (const { isBind, pattern } of this.#sent) {
      const fields = { queue, exchange, routingKey: pattern, nowait: isBind }
      this.#connection.sendMethod(this.#channel, isBind ? QUEUE_BIND : QUEUE_UNBIND, fields)
    }
    this.ask().then(
      () => {
        for (const { resolve } of this.#sent.splice(0)) resolve()
        this.#flush()
      },
      // The channel has ended, which is seen to where it is watched.
      () => undefined,
    )
  }

  #use(channel: Channel): void {
    this.#channel = channel
    // AMQP has no unbind without an answer.
    dropReplies(channel, QUEUE_UNBIND_OK)
    watchChannel(channel, (cause) => {
      if (this.#isRepairing || this.#isStopped) return
      if (replyCodeOf(cause) === ACCESS_REFUSED) this.#repair().catch(this.#options.lost)
      else this.#options.lost(cause)
    })
  }

  /** Makes what was sent one by one, and tells whose change the broker forbids. */
  async #repair(): Promise<void> {
    this.#isRepairing = true
    let channel: Channel | undefined
    for (const { isBind, pattern, resolve, reject } of this.#sent.splice(0)) {
      channel ??= await this.#openForRepair()
      try {
        await this.#make(channel, isBind, pattern)
        this.#options.heard()
        resolve()
      } catch (cause) {
        if (replyCodeOf(cause) !== ACCESS_REFUSED) throw cause
        channel = undefined
        reject(new WebMQError('E_BROKER_REFUSED', { detail: `rabbitmq forbids ${pattern}`, cause }))
      }
    }
    this.#use(channel ?? (await this.#connection.openChannel()))
    this.#isRepairing = false
    this.#flush()
  }

  async #openForRepair(): Promise<Channel> {
    const channel = await this.#connection.openChannel()
    // Its end is told by the call that it ends.
    channel.on('error', () => undefined)
    return channel
  }

  #make(channel: Channel, isBind: boolean, pattern: string): Promise<unknown> {
    const { queue, exchange } = this.#options
    return called((done) => {
      if (isBind) channel.bindQueue(queue, exchange, pattern, {}, done)
      else channel.unbindQueue(queue, exchange, pattern, {}, done)
    })
  }
}
