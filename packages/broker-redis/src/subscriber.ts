import type { Redis } from 'ioredis'
import { type Deferred, deferred } from 'webmq-server/brokers'

/** What a connection subscribes to: a channel, a glob, or a channel of a cluster's shard. */
export type SubscriptionKind = 'channel' | 'glob' | 'shard'

export interface ReceivedMessage {
  readonly channel: Buffer
  readonly payload: Buffer
  /** The glob that brought this copy; `undefined` when the channel itself is subscribed. */
  readonly glob: string | undefined
}

export const SUBSCRIBE = { channel: 'subscribe', glob: 'psubscribe', shard: 'ssubscribe' } as const
export const UNSUBSCRIBE = { channel: 'unsubscribe', glob: 'punsubscribe', shard: 'sunsubscribe' } as const

type Command = (typeof SUBSCRIBE | typeof UNSUBSCRIBE)[SubscriptionKind]

interface Request {
  readonly command: Command
  readonly name: string
  readonly reply: Deferred<void>
}

/** The subscriptions of one connection. The commands of one turn of the event loop go out in one pipeline. */
export class RedisSubscriber {
  readonly #redis: Redis
  #waiting: Request[] = []
  readonly #flush: () => void

  /** @param failed Called for an error of `deliver`, too: thrown on, it would end the process. */
  constructor(redis: Redis, deliver: (message: ReceivedMessage) => void, failed: (cause: unknown) => void) {
    this.#redis = redis
    this.#flush = () => void this.#send().catch(failed)
    const take = (message: ReceivedMessage) => {
      try {
        deliver(message)
      } catch (cause) {
        failed(cause)
      }
    }
    redis.on('messageBuffer', (channel, payload) => take({ channel, payload, glob: undefined }))
    redis.on('smessageBuffer', (channel: Buffer, payload: Buffer) => take({ channel, payload, glob: undefined }))
    redis.on('pmessageBuffer', (glob, channel, payload) => take({ channel, payload, glob }))
  }

  /** Resolves when it is done. */
  request(command: Command, name: string): Promise<void> {
    const reply = deferred()
    if (this.#waiting.length === 0) setImmediate(this.#flush)
    this.#waiting.push({ command, name, reply })
    return reply.promise
  }

  async #send(): Promise<void> {
    const requests = this.#waiting
    this.#waiting = []
    const pipeline = this.#redis.pipeline()
    for (const { command, name } of requests) pipeline[command](name)
    const results = (await pipeline.exec()) ?? []
    for (const [index, [error]] of results.entries()) {
      if (error === null) requests[index]?.reply.resolve()
      else requests[index]?.reply.reject(error)
    }
  }
}
