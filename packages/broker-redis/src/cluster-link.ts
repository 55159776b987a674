import { addAbortListener } from 'node:events'
import { isKey } from 'webmq-client/protocol'
import { decodeEnvelope, type Link, type LinkEvents, type LinkMessage, SubscriptionCover } from 'webmq-server/brokers'
import type { RedisHost } from './address.js'
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
  /** Of the buckets. Because of the braces only the number decides the slot. */
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
    this.#channels = bucketsOf('#').map((bucket) => `${namespace}:{${bucket}}`)
  }

  static async open(options: RedisLinkOptions, events: LinkEvents, signal: AbortSignal): Promise<ClusterLink> {
    const masters = await askForMasters(options, signal)
    const link = new ClusterLink(options.context.namespace, events)
    using _listener = addAbortListener(signal, () => link.destroy())
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

/** Number of channels for all keys of a cluster. A pattern that begins with a wildcard needs a subscription to each. */
const BUCKET_COUNT = 256

const SLOT_COUNT = 16_384

/** FNV-1a over the first word, so most patterns need only one bucket. The same on all nodes. */
function bucketOf(key: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < key.length; at++) {
    const unit = key.charCodeAt(at)
    if (unit === 0x2e) break
    hash = Math.imul(hash ^ unit, 0x01000193)
  }
  return (hash ^ (hash >>> 16)) & (BUCKET_COUNT - 1)
}

function bucketsOf(pattern: string): readonly number[] {
  const [first = ''] = pattern.split('.', 1)
  if (first === '*' || first === '#') return Array.from({ length: BUCKET_COUNT }, (_, bucket) => bucket)
  return [bucketOf(pattern)]
}

/** The slot of the text between the braces of a name: CRC-16/XMODEM, see the Redis cluster specification. */
function slotOf(tag: string): number {
  let crc = 0
  for (const char of tag) {
    crc ^= char.charCodeAt(0) << 8
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1
  }
  return (crc & 0xffff) % SLOT_COUNT
}

interface ClusterMaster {
  readonly host: RedisHost
  readonly buckets: readonly number[]
  readonly hasLog: boolean
}

/**
 * Maps buckets to masters, from the reply to CLUSTER SLOTS. Masters without buckets or log are left out.
 * @param asked The server that replied; used where the reply has no host name.
 * @param logTag The log's text between the braces; `undefined` without a log.
 * @throws when a needed slot has no master
 */
function mastersOf(reply: unknown, asked: RedisHost, logTag?: string): readonly ClusterMaster[] {
  const ranges = Array.isArray(reply) ? reply.map((range) => rangeOf(range, asked)) : []
  const masters = new Map<string, { readonly host: RedisHost; readonly buckets: number[]; hasLog: boolean }>()
  const masterOf = (tag: string) => {
    const slot = slotOf(tag)
    const range = ranges.find(({ first, last }) => first <= slot && slot <= last)
    if (range === undefined) throw new Error(`no server of the cluster has slot ${slot}`)
    const name = `${range.host.host} ${range.host.port}`
    const master = masters.get(name) ?? { host: range.host, buckets: [], hasLog: false }
    masters.set(name, master)
    return master
  }
  for (let bucket = 0; bucket < BUCKET_COUNT; bucket++) masterOf(String(bucket)).buckets.push(bucket)
  if (logTag !== undefined) masterOf(logTag).hasLog = true
  return [...masters.values()]
}

function rangeOf(range: unknown, asked: RedisHost) {
  const [first, last, master] = Array.isArray(range) ? range : []
  const [host, port] = Array.isArray(master) ? master : []
  const name = typeof host === 'string' && host !== '' && host !== '?' ? host : asked.host
  return { first: Number(first), last: Number(last), host: { host: name, port: Number(port) } }
}
