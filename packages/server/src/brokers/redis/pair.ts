import type { Redis } from 'ioredis'
import type { Accepted } from '../../ports/broker.js'
import type { LinkContext } from '../remote/link.js'
import type { RedisAddress, RedisHost } from './address.js'
import { RedisConnection } from './connection.js'
import { isPassing, isReply, redisError } from './error.js'
import { HeardWay, Heartbeat } from './heartbeat.js'
import { RedisPublisher } from './publisher.js'
import { type PushedMessage, RedisSubscriber, type SubscriptionKind } from './subscriber.js'

/** What a {@link RedisPair} is made of. */
export interface RedisPairOptions {
  readonly address: RedisAddress
  readonly host?: RedisHost
  readonly context: LinkContext
  readonly hideSecrets: (text: string) => string
  /** Of a server in a cluster; channels are then those of shards. */
  readonly isShard: boolean
  /** Where the heartbeats of this node go to. */
  readonly heartbeatChannel: string
}

/** What a {@link RedisPair} tells; nothing more once it has told that it is lost. */
export interface RedisPairEvents {
  /** What it gets is borrowed. */
  message(message: PushedMessage): void
  accepted(sequence: number): void
  /** Of a message of the log. */
  logged(sequence: number, accepted: Accepted): void
  refused(sequence: number, cause: Error): void
  lost(cause: Error): void
}

const CLOSE_TIMEOUT_MS = 1_500

/**
 * The connections to one server: one publishes, the other is subscribed, so that neither waits for the other's
 * bytes. Heartbeats are published and must come back: a connection that answers may still be subscribed to nothing, or to
 * another server than the one that is published to.
 */
export class RedisPair {
  readonly #subscriber: RedisSubscriber
  readonly publisher: RedisPublisher
  readonly #options: RedisPairOptions
  readonly #events: RedisPairEvents
  readonly #publishing: RedisConnection
  readonly #subscribed: RedisConnection
  readonly #publishingWay = new HeardWay('the publishing connection')
  readonly #subscribedWay = new HeardWay('the subscribed connection')
  #heartbeat: Heartbeat | undefined
  #beatCame: () => void = () => undefined
  /** Nothing is told before it has begun, nor after it was lost. */
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
    this.#subscriber = new RedisSubscriber(
      subscribed.redis,
      (message) => this.#deliver(message),
      this.#subscribedWay.heard,
    )
    this.publisher = new RedisPublisher({
      redis: publishing.redis,
      node: options.context.node,
      command: options.isShard ? 'SPUBLISH' : 'PUBLISH',
      heard: this.#publishingWay.heard,
      accepted: (sequence) => {
        if (this.#isTelling) events.accepted(sequence)
      },
      logged: (sequence, accepted) => {
        if (this.#isTelling) events.logged(sequence, accepted)
      },
      refused: (sequence, reply) => this.#refused(sequence, reply),
    })
    // The slot of a channel has moved to another server, and with it what is published there.
    subscribed.redis.on('moved', () => this.#lose(new Error('a slot of the cluster has moved')))
  }

  /**
   * Resolves when a message of this node has gone the whole way round.
   * @throws as {@link LinkDriver.connect}
   */
  static async open(options: RedisPairOptions, events: RedisPairEvents, signal: AbortSignal): Promise<RedisPair> {
    const { address, host, context, hideSecrets } = options
    const connect = () =>
      RedisConnection.open(
        { address, name: `webmq-${context.node}`, hideSecrets, ...(host === undefined ? undefined : { host }) },
        signal,
      )
    const [publishing, subscribed] = await Promise.allSettled([connect(), connect()])
    if (publishing.status === 'rejected' || subscribed.status === 'rejected') {
      for (const each of [publishing, subscribed]) if (each.status === 'fulfilled') each.value.destroy()
      throw publishing.status === 'rejected' ? publishing.reason : (subscribed as PromiseRejectedResult).reason
    }
    const pair = new RedisPair(options, events, [publishing.value, subscribed.value])
    try {
      await pair.#begin(signal)
      return pair
    } catch (error) {
      pair.#end()
      throw redisError(error, hideSecrets)
    }
  }

  /** Ends it within a bound of time; never rejects. Idempotent. */
  async close(): Promise<void> {
    const wasLost = !this.#isTelling
    this.#stopTelling()
    if (wasLost) this.#end()
    else await Promise.all([this.#publishing.close(CLOSE_TIMEOUT_MS), this.#subscribed.close(CLOSE_TIMEOUT_MS)])
  }

  /** Subscribes; a refusal of the server is `E_BROKER_REFUSED`, and the pair goes on. */
  async subscribe(kind: SubscriptionKind, name: string, live?: () => void): Promise<void> {
    await this.#answered(this.#subscriber.subscribe(kind, name, live))
  }

  async unsubscribe(kind: SubscriptionKind, name: string, over?: () => void): Promise<void> {
    await this.#answered(this.#subscriber.unsubscribe(kind, name, over))
  }

  /**
   * Asks by the connection that publishes.
   * @throws as `subscribe`
   */
  async ask<T>(send: (redis: Redis) => Promise<T>): Promise<T> {
    return await this.#answered(this.publisher.ask(1, () => send(this.#publishing.redis)))
  }

  /** Gives the link up. */
  lose(cause: Error): void {
    this.#lose(cause)
  }

  async #answered<T>(reply: Promise<T>): Promise<T> {
    try {
      return await reply
    } catch (error) {
      if (isReply(error) && isPassing(error)) this.#lose(error)
      throw redisError(error, this.#options.hideSecrets)
    }
  }

  async #begin(signal: AbortSignal): Promise<void> {
    const { context, heartbeatChannel, isShard } = this.#options
    const came = new Promise<void>((resolve) => {
      this.#beatCame = resolve
    })
    const aborted = new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    })
    const ended = Promise.race([this.#publishing.ended, this.#subscribed.ended]).then((cause) => {
      throw cause
    })
    const begun = async () => {
      await this.#subscriber.subscribe(isShard ? 'shard' : 'channel', heartbeatChannel)
      await Promise.all([this.#beat(), came])
    }
    for (const each of [aborted, ended]) each.catch(() => undefined)
    await Promise.race([begun(), aborted, ended])
    this.#isTelling = true
    for (const { ended } of [this.#publishing, this.#subscribed]) void ended.then((cause) => this.#lose(cause))
    this.#heartbeat = new Heartbeat([this.#publishingWay, this.#subscribedWay], {
      intervalMs: context.heartbeatMs,
      beat: () => {
        this.#beat().catch((error: unknown) => this.#lose(error))
      },
      silent: (way) => this.#lose(new Error(`${way} was silent for ${2 * context.heartbeatMs} ms`)),
    })
  }

  /** Also asks whether the server is still a master: a replica takes messages, and keeps them from all others. */
  async #beat(): Promise<void> {
    const { redis } = this.#publishing
    const { heartbeatChannel, isShard } = this.#options
    const beat = () => (isShard ? redis.spublish(heartbeatChannel, '') : redis.publish(heartbeatChannel, ''))
    const asked = redis.condition?.protocol === 3 ? this.publisher.ask(1, () => roleOf(redis)) : undefined
    const [role] = await Promise.all([asked, this.publisher.ask(1, beat)])
    if (role === 'replica' || role === 'slave') throw new Error('the server is a replica')
  }

  #deliver(message: PushedMessage): void {
    const { bytes, channelStart, channelEnd, payloadStart, payloadEnd } = message
    const isBeat =
      payloadStart === payloadEnd && bytes.toString('utf8', channelStart, channelEnd) === this.#options.heartbeatChannel
    if (isBeat) this.#beatCame()
    else if (this.#isTelling) this.#events.message(message)
  }

  #refused(sequence: number, reply: Error): void {
    if (!this.#isTelling) return
    const error = redisError(reply, this.#options.hideSecrets)
    if (isPassing(reply)) this.#lose(error)
    else this.#events.refused(sequence, error)
  }

  #lose(cause: unknown): void {
    if (!this.#isTelling) return
    this.#stopTelling()
    this.#events.lost(redisError(cause, this.#options.hideSecrets))
  }

  #stopTelling(): void {
    this.#isTelling = false
    this.#heartbeat?.stop()
  }

  #end(): void {
    this.#stopTelling()
    this.#publishing.destroy()
    this.#subscribed.destroy()
  }
}

/** By HELLO, which everybody may, and which Redis has from 6 on. */
async function roleOf(redis: RedisConnection['redis']): Promise<string | undefined> {
  const fields = await redis.call('HELLO')
  if (!Array.isArray(fields)) return undefined
  const at = fields.indexOf('role')
  return at < 0 ? undefined : String(fields[at + 1])
}
