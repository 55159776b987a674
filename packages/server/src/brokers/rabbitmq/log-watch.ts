import type { Channel } from 'amqplib'
import { type AmqpConnection, closeChannel, watchChannel } from './connection.js'

/**
 * Watches the log of a node that does not follow it. A node that follows is told by its consumer when the queue is
 * deleted. Otherwise messages for it might go to other queues only, and count as accepted.
 */
export class LogWatch {
  readonly #channel: Channel
  readonly #timer: NodeJS.Timeout
  #isStopped = false

  static async open(
    connection: AmqpConnection,
    queue: string,
    intervalMs: number,
    lost: (cause: Error) => void,
  ): Promise<LogWatch> {
    const watch = new LogWatch(await connection.openChannel(), queue, intervalMs, lost)
    await watch.#channel.checkQueue(queue)
    return watch
  }

  private constructor(channel: Channel, queue: string, intervalMs: number, lost: (cause: Error) => void) {
    this.#channel = channel
    watchChannel(channel, (cause) => {
      if (!this.#isStopped) lost(cause)
    })
    // If it fails, the channel ends.
    this.#timer = setInterval(() => void channel.checkQueue(queue).catch(() => undefined), intervalMs).unref()
  }

  /** Watches nothing more. */
  stop(): void {
    this.#isStopped = true
    clearInterval(this.#timer)
  }

  /** The same, and closes the channel. */
  close(): void {
    this.stop()
    closeChannel(this.#channel)
  }
}
