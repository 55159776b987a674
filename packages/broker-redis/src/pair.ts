import type { Redis } from 'ioredis'
import { deferred, type LinkEvents, Liveness, limitedSignal } from 'webmq-server/brokers'
import type { LogPlace } from 'webmq-server/ports'
import type { RedisHost } from './address.js'
import { answerTimeoutMs, RedisConnection, type RedisLinkOptions } from './connection.js'
import {
  isPassing,
  isReply,
  noWritesError,
  noWritesReason,
  redisError,
  refusesWrites,
  singleServerError,
} from './error.js'
import { LogLink, type LogServer } from './log-link.js'
import { type PublisherReports, RedisPublisher } from './publisher.js'
import { type ReceivedMessage, RedisSubscriber, SUBSCRIBE, type SubscriptionKind, UNSUBSCRIBE } from './subscriber.js'

export interface RedisPairOptions extends RedisLinkOptions {
  readonly host?: RedisHost
  /** The server has the log. */
  readonly hasLog: boolean
  /** The server belongs to a cluster: channels are sharded. */
  readonly isShard: boolean
  readonly heartbeatChannel: string
}

/** What a {@link RedisPair} reports, besides {@link LinkEvents}. `lost` is the last report. */
export interface RedisPairEvents extends LinkEvents {
  /** A message that does not come by the log. */
  message(message: ReceivedMessage): void
}

/**
 * The connections to one server. One publishes and the other subscribes, so that neither waits for the other's bytes.
 *
 * A heartbeat is published on one and must arrive on the other. An answer to PING would prove less: the connection may
 * have lost its subscriptions, or lead to another server than the publishing one. Its payload is when it was sent, by
 * `performance.now()`: what was logged before that has arrived when it arrives, however long this process stood still.
 */
export class RedisPair implements LogServer, PublisherReports {
  readonly #options: RedisPairOptions
  readonly publisher: RedisPublisher
  readonly log: LogLink | undefined
  readonly #subscriber: RedisSubscriber
  readonly #events: RedisPairEvents
  readonly #publishing: RedisConnection
  readonly #subscribed: RedisConnection
  readonly #heartbeatChannel: Buffer
  #publishingLiveness: Liveness | undefined
  #subscribedLiveness: Liveness | undefined
  #roleTimer: NodeJS.Timeout | undefined
  /** Resolves when the first heartbeat arrives. */
  readonly #heartbeat = deferred()
  /** Events are reported: from the first heartbeat until the pair is lost or closed. */
  #isTelling = false

  private constructor(
    options: RedisPairOptions,
    events: RedisPairEvents,
    [publishing, subscribed]: readonly [RedisConnection, RedisConnection],
  ) {
    this.#options = options
    this.#events = events
    this.#publishing = publishing
    this.#subscribed = subscribed
    this.#heartbeatChannel = Buffer.from(options.heartbeatChannel)
    this.#subscriber = new RedisSubscriber(
      subscribed.redis,
      (message) => this.#deliver(message),
      (cause) => this.lose(cause),
    )
    this.publisher = new RedisPublisher(publishing.redis, options.context.node, options.isShard, this)
    if (options.hasLog) this.log = new LogLink(options.log, this, this.publisher, events)
    // A channel's slot has moved to another server, which now gets the messages.
    subscribed.redis.on('moved', () => this.lose(new Error('a slot of the cluster has moved')))
  }

  /** Resolves when a heartbeat of this node has arrived. */
  static async open(options: RedisPairOptions, events: RedisPairEvents, signal: AbortSignal): Promise<RedisPair> {
    const connect = () => RedisConnection.open(options, options.host, signal)
    const [publishing, subscribed] = await Promise.allSettled([connect(), connect()])
    if (publishing.status === 'rejected' || subscribed.status === 'rejected') {
      for (const each of [publishing, subscribed]) if (each.status === 'fulfilled') each.value.destroy()
      throw publishing.status === 'rejected' ? publishing.reason : (subscribed as PromiseRejectedResult).reason
    }
    const pair = new RedisPair(options, events, [publishing.value, subscribed.value])
    // Nobody watches the connections before the first heartbeat.
    using limited = limitedSignal(signal, answerTimeoutMs(options))
    try {
      await pair.#begin(limited.signal)
      return pair
    } catch (error) {
      pair.destroy()
      throw pair.#errorOf(error)
    }
  }

  /** Ends the pair at once: Redis keeps nothing of it. Idempotent. */
  destroy(): void {
    this.#stopTelling()
    this.#publishing.destroy()
    this.#subscribed.destroy()
  }

  /**
   * Resolves when the subscription is live.
   * @throws {WebMQError} `E_BROKER_REFUSED` when the server does not allow it; the pair stays up.
   */
  async subscribe(kind: SubscriptionKind, name: string): Promise<void> {
    await this.#answered(this.#subscriber.request(SUBSCRIBE[kind], name))
  }

  async unsubscribe(kind: SubscriptionKind, name: string): Promise<void> {
    await this.#answered(this.#subscriber.request(UNSUBSCRIBE[kind], name))
  }

  /** Sends a command over the publishing connection. */
  async ask<T>(send: (redis: Redis) => Promise<T>): Promise<T> {
    const reply = await this.#answered(send(this.#publishing.redis))
    this.alive()
    return reply
  }

  /** The server has answered over the publishing connection: a sign of life. */
  alive(): void {
    this.#publishingLiveness?.alive()
  }

  /** The server has accepted a message. @param duplicateOf As in {@link LinkEvents.confirmed}. */
  confirmed(sequence: number, duplicateOf?: LogPlace): void {
    if (this.#isTelling) this.#events.confirmed(sequence, false, duplicateOf)
  }

  refused(sequence: number, reply: Error): void {
    if (!this.#isTelling) return
    if (refusesWrites(reply)) {
      this.log?.refused(noWritesReason(reply))
      this.#events.refused(sequence, noWritesError(reply))
    } else if (isPassing(reply)) this.lose(reply)
    else this.#events.refused(sequence, this.#errorOf(reply))
  }

  lose(cause: unknown): void {
    if (!this.#isTelling) return
    this.#stopTelling()
    this.log?.stop()
    this.#events.lost(this.#errorOf(cause))
  }

  #errorOf(cause: unknown): Error {
    const { hideSecrets, isShard } = this.#options
    const error = redisError(cause, hideSecrets)
    return isShard ? error : singleServerError(error)
  }

  async #answered<T>(reply: Promise<T>): Promise<T> {
    try {
      return await reply
    } catch (error) {
      if (isReply(error) && isPassing(error)) this.lose(error)
      throw this.#errorOf(error)
    }
  }

  async #begin(signal: AbortSignal): Promise<void> {
    const { heartbeatChannel, isShard } = this.#options
    const aborted = deferred<never>()
    signal.addEventListener('abort', () => aborted.reject(signal.reason), { once: true })
    const ended = Promise.race([this.#publishing.ended, this.#subscribed.ended]).then((cause) => {
      throw cause
    })
    const begun = async () => {
      await this.#subscriber.request(SUBSCRIBE[isShard ? 'shard' : 'channel'], heartbeatChannel)
      await Promise.all([this.#assertMaster(), this.#sendHeartbeat(), this.#heartbeat.promise])
    }
    for (const each of [aborted.promise, ended]) each.catch(() => undefined)
    await Promise.race([begun(), aborted.promise, ended])
    this.#isTelling = true
    for (const { ended } of [this.#publishing, this.#subscribed]) void ended.then((cause) => this.lose(cause))
    this.#watch()
  }

  #watch(): void {
    const { heartbeatMs: intervalMs } = this.#options.context
    const probe = () => this.#loseIfFails(this.#sendHeartbeat())
    const livenessOf = (name: string) =>
      new Liveness({ intervalMs, probe, silent: (detail) => this.lose(new Error(`the ${name} connection: ${detail}`)) })
    this.#publishingLiveness = livenessOf('publishing')
    this.#subscribedLiveness = livenessOf('subscribed')
    this.#roleTimer = setInterval(() => {
      this.#loseIfFails(this.#assertMaster())
      // Other messages keep the link alive, and do not tell that the log was followed.
      if (this.log !== undefined) probe()
    }, intervalMs)
  }

  #loseIfFails(promise: Promise<void>): void {
    promise.catch((error: unknown) => this.lose(error))
  }

  async #sendHeartbeat(): Promise<void> {
    const { heartbeatChannel, isShard } = this.#options
    const sentMs = String(performance.now())
    await this.ask((redis) =>
      isShard ? redis.spublish(heartbeatChannel, sentMs) : redis.publish(heartbeatChannel, sentMs),
    )
  }

  /** A replica accepts messages but does not pass them to the nodes on its master. */
  async #assertMaster(): Promise<void> {
    const role = await this.ask(roleOf)
    if (role === 'replica' || role === 'slave') throw new Error('the server is a replica')
  }

  #deliver(message: ReceivedMessage): void {
    this.#subscribedLiveness?.alive()
    const { channel, payload } = message
    const heartbeat = this.#heartbeatChannel
    if (channel.length === heartbeat.length && channel.equals(heartbeat)) this.#heard(payload)
    else if (this.#isTelling && this.log?.take(message) !== true) this.#events.message(message)
  }

  #heard(heartbeat: Buffer): void {
    this.#heartbeat.resolve()
    const sentMs = Number(heartbeat.toString('latin1'))
    // Others may publish there.
    if (sentMs <= performance.now()) this.log?.followed(sentMs)
  }

  #stopTelling(): void {
    this.#isTelling = false
    this.#publishingLiveness?.stop()
    this.#subscribedLiveness?.stop()
    clearInterval(this.#roleTimer)
  }
}

/** Asks with HELLO, which needs no permission. `undefined` before Redis 6, which lacks it. */
async function roleOf(redis: Redis): Promise<string | undefined> {
  try {
    const fields = await redis.call('HELLO')
    if (!Array.isArray(fields)) return undefined
    const at = fields.indexOf('role')
    return at < 0 ? undefined : String(fields[at + 1])
  } catch (error) {
    if (isReply(error) && /unknown command/i.test(error.message)) return undefined
    throw error
  }
}
