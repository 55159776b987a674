import { Command } from 'ioredis'
import type { RedisConnection } from './redis-connection.js'
import { TurnStream } from './turn-stream.js'

/** What can be subscribed to: a channel, a glob, or a channel of a cluster's shard. */
export type SubscriptionKind = 'channel' | 'glob' | 'shard'

const COMMANDS = {
  channel: ['subscribe', 'unsubscribe'],
  glob: ['psubscribe', 'punsubscribe'],
  shard: ['ssubscribe', 'sunsubscribe'],
} as const

/** The subscriptions of one connection. Those of one turn of the event loop are written at once. */
export class RedisSubscriber {
  readonly #stream: TurnStream

  constructor({ redis }: RedisConnection) {
    this.#stream = new TurnStream(redis)
  }

  /**
   * @param live Called when it is live and before any message that comes after that, which a promise cannot.
   * @throws the server's reply, or what ended the connection
   */
  async subscribe(kind: SubscriptionKind, name: string, live?: () => void): Promise<void> {
    await this.#send(COMMANDS[kind][0], name, live)
  }

  /** @param over As `live` of {@link subscribe}. */
  async unsubscribe(kind: SubscriptionKind, name: string, over?: () => void): Promise<void> {
    await this.#send(COMMANDS[kind][1], name, over)
  }

  #send(name: string, channel: string, done: (() => void) | undefined): Promise<unknown> {
    const command = new Command(name, [channel])
    const { resolve } = command
    command.resolve = (reply) => {
      done?.()
      resolve(reply)
    }
    this.#stream.send(command)
    return command.promise
  }
}
