import { isKey } from 'webmq-client/protocol'
import { SubscriptionCover } from '../remote/cover.js'
import { decodeEnvelope } from '../remote/envelope.js'
import type { Link, LinkEvents, LinkMessage } from '../remote/link.js'
import { bucketChannel, bucketOf, bucketsOf, type ClusterMaster, mastersOf } from './cluster-slots.js'
import { RedisConnection, type RedisLinkOptions } from './connection.js'
import { redisError } from './error.js'
import type { LogLink } from './log-link.js'
import { RedisPair } from './pair.js'
import type { ReceivedMessage } from './subscriber.js'

/**
 * A link to all masters of a Redis cluster (7 or later). Sharded channels have no globs. So keys are spread over
 * buckets by their first word, each bucket is a channel, and the envelope holds the key. When a bucket moves to another
 * master, the link is lost.
 */
export class ClusterLink implements Link {
  readonly #events: LinkEvents
  readonly #namespace: string
  readonly #channels: readonly string[]
  readonly #pairs: RedisPair[] = []
  readonly #pairOfBucket: RedisPair[] = []
  readonly #cover = new SubscriptionCover({
    subscriptionsOf: (pattern) => bucketsOf(pattern).map(String),
    subscribe: async (bucket) => await this.#pair(Number(bucket)).subscribe('shard', this.#channel(Number(bucket))),
    unsubscribe: async (bucket) => await this.#pair(Number(bucket)).unsubscribe('shard', this.#channel(Number(bucket))),
  })
  log: LogLink | undefined
  #isOver = false

  private constructor(namespace: string, events: LinkEvents) {
    this.#events = events
    this.#namespace = namespace
    this.#channels = bucketsOf('#').map((bucket) => bucketChannel(namespace, bucket))
  }

  static async open(options: RedisLinkOptions, events: LinkEvents, signal: AbortSignal): Promise<ClusterLink> {
    const masters = await askForMasters(options, signal)
    const link = new ClusterLink(options.context.namespace, events)
    const opened = await Promise.allSettled(masters.map((master) => link.#open(options, master, signal)))
    const failed = opened.find((result) => result.status === 'rejected')
    if (failed === undefined) {
      await link.#watch()
      return link
    }
    link.destroy()
    throw failed.reason
  }

  bind(pattern: string): Promise<void> {
    return this.#cover.bind(pattern)
  }

  unbind(pattern: string): Promise<void> {
    return this.#cover.unbind(pattern)
  }

  publish(message: LinkMessage): void {
    if (message.isLogged && this.log !== undefined) {
      this.log.append(message)
      return
    }
    const { key } = message
    const bucket = bucketOf(key)
    this.#pair(bucket).publisher.publish(this.#channel(bucket), message, key)
  }

  async close(): Promise<void> {
    this.destroy()
  }

  destroy(): void {
    this.#isOver = true
    for (const pair of this.#pairs) pair.destroy()
  }

  async #open(options: RedisLinkOptions, master: ClusterMaster, signal: AbortSignal): Promise<void> {
    const { host, buckets, hasLog } = master
    const { namespace, node } = options.context
    const pair = await RedisPair.open(
      // Not the channel of a bucket, but in a slot of this master.
      {
        ...options,
        hasLog,
        host,
        isShard: true,
        heartbeatChannel: `${namespace}/${node}:{${buckets[0] ?? namespace}}`,
      },
      {
        ...this.#events,
        message: (message) => this.#deliver(message),
        lost: (cause) => this.#lose(cause),
      },
      signal,
    )
    this.#pairs.push(pair)
    for (const bucket of buckets) this.#pairOfBucket[bucket] = pair
    this.log ??= pair.log
  }

  /**
   * What other programs PUBLISH to the channel of a key reaches every server of the cluster, and no listener: a bucket's
   * channel brings the messages of nodes. They are told. The glob is, word for word, the one that users are granted.
   */
  async #watch(): Promise<void> {
    try {
      await Promise.all([this.log?.overhear(), this.#pairs[0]?.subscribe('glob', `${this.#namespace}[:/]*`)])
    } catch (error) {
      this.destroy()
      throw error
    }
  }

  #deliver(message: ReceivedMessage): void {
    if (this.#isOver) return
    const { channel, payload, glob } = message
    if (glob !== undefined) {
      this.#refuse(channel.toString('utf8', this.#namespace.length + 1))
      return
    }
    const delivery = decodeEnvelope(undefined, payload)
    if (delivery?.source !== undefined) this.#events.deliver(delivery)
    else this.#events.malformed(`a message without its key, to ${channel}`, '#')
  }

  #refuse(key: string): void {
    if (isKey(key)) this.#events.malformed(`PUBLISH to ${key}: in a cluster it reaches nobody`, key)
    else this.#events.malformed(`no key: ${key}`)
  }

  #lose(cause: Error): void {
    if (this.#isOver) return
    this.#isOver = true
    this.log?.stop()
    this.#events.lost(cause)
  }

  #pair(bucket: number): RedisPair {
    const pair = this.#pairOfBucket[bucket]
    if (pair === undefined) throw new Error(`bucket ${bucket} has no server`)
    return pair
  }

  #channel(bucket: number): string {
    return this.#channels[bucket] ?? ''
  }
}

/** Asks the first server that answers. */
async function askForMasters(options: RedisLinkOptions, signal: AbortSignal): Promise<readonly ClusterMaster[]> {
  const { address, context, hideSecrets } = options
  let failure: unknown
  for (const host of address.hosts) {
    try {
      const connection = await RedisConnection.open(options, host, signal)
      try {
        return mastersOf(await connection.redis.cluster('SLOTS'), host, context.namespace)
      } finally {
        connection.destroy()
      }
    } catch (error) {
      failure = redisError(error, hideSecrets)
      if (signal.aborted) break
    }
  }
  throw failure
}
