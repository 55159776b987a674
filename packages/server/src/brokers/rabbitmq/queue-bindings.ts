import type { Channel } from 'amqplib'
import { WebMQError } from 'webmq-client/protocol'
import { type Deferred, deferred } from '../../base/deferred.js'
import type { PatternBinder } from './bounded-bindings.js'
import { type AmqpConnection, watchChannel } from './connection.js'
import { ACCESS_REFUSED, replyCodeOf } from './errors.js'

/** What a {@link QueueBindings} works with. */
export interface QueueBindingsOptions {
  readonly queue: string
  readonly exchange: string
  /** The broker has answered. */
  readonly alive: () => void
  readonly lost: (cause: Error) => void
}

/** A pattern to bind or unbind, and the caller's promise. */
interface Change {
  readonly isBind: boolean
  readonly pattern: string
  readonly made: Deferred<void>
}

/**
 * Binds a queue to patterns, one by one in the order of the calls.
 *
 * It has a channel of its own: a broker that forbids a pattern (topic permissions) closes the channel to say so. The
 * next change then opens another.
 */
export class QueueBindings implements PatternBinder {
  readonly #connection: AmqpConnection
  readonly #options: QueueBindingsOptions
  #channel: Channel | undefined
  readonly #changes: Change[] = []
  #isMaking = false
  #isStopped = false

  constructor(connection: AmqpConnection, options: QueueBindingsOptions) {
    this.#connection = connection
    this.#options = options
  }

  /** @throws {WebMQError} `E_BROKER_REFUSED` when the broker forbids it. */
  bind(pattern: string): Promise<void> {
    return this.#change(true, pattern)
  }

  unbind(pattern: string): Promise<void> {
    return this.#change(false, pattern)
  }

  /** Sends nothing more; changes that wait stay unanswered. */
  stop(): void {
    this.#isStopped = true
  }

  #change(isBind: boolean, pattern: string): Promise<void> {
    const made = deferred()
    this.#changes.push({ isBind, pattern, made })
    if (!this.#isMaking) this.#makeAll().catch(this.#options.lost)
    return made.promise
  }

  async #makeAll(): Promise<void> {
    this.#isMaking = true
    for (let change = this.#changes.shift(); change !== undefined; change = this.#changes.shift()) {
      await this.#make(change)
      if (this.#isStopped) return
    }
    this.#isMaking = false
  }

  async #make({ isBind, pattern, made }: Change): Promise<void> {
    const { queue, exchange, alive } = this.#options
    this.#channel ??= await this.#open()
    try {
      if (isBind) await this.#channel.bindQueue(queue, exchange, pattern)
      else await this.#channel.unbindQueue(queue, exchange, pattern)
    } catch (cause) {
      if (replyCodeOf(cause) !== ACCESS_REFUSED) throw cause
      this.#channel = undefined
      made.reject(new WebMQError('E_BROKER_REFUSED', { detail: `rabbitmq forbids ${pattern}`, cause }))
      return
    }
    alive()
    made.resolve()
  }

  async #open(): Promise<Channel> {
    const channel = await this.#connection.openChannel()
    watchChannel(channel, (cause) => {
      // The call that the broker forbids tells its caller.
      if (replyCodeOf(cause) !== ACCESS_REFUSED) this.#options.lost(cause)
    })
    return channel
  }
}
