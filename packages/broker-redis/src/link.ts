import { isUtf8 } from 'node:buffer'
import { addAbortListener } from 'node:events'
import { isKey } from 'webmq-client/protocol'
import { decodeEnvelope, type Link, type LinkDelivery, type LinkEvents, type LinkMessage } from 'webmq-server/brokers'
import type { RedisLinkOptions } from './connection.js'
import type { RedisLog } from './log.js'
import type { LogLink } from './log-link.js'
import { RedisPair } from './pair.js'
import type { ReceivedMessage, SubscriptionKind } from './subscriber.js'
import { globOf, isExact, RedisSubscriptions } from './subscriptions.js'

/** A link to one Redis server. The channel of a key is `namespace:key`. */
export class RedisLink implements Link {
  readonly #events: LinkEvents
  readonly #prefix: string
  readonly #foreignCopies = new ForeignCopies()
  readonly #subscriptions = new RedisSubscriptions({
    subscribe: (pattern) => this.#subscribe(pattern),
    unsubscribe: (pattern) => this.#unsubscribe(pattern),
  })
  readonly #logged: RedisLog
  #pair: RedisPair | undefined

  private constructor(namespace: string, log: RedisLog, events: LinkEvents) {
    this.#prefix = `${namespace}:`
    this.#logged = log
    this.#events = events
  }

  static async open(options: RedisLinkOptions, events: LinkEvents, signal: AbortSignal): Promise<RedisLink> {
    const { namespace, node } = options.context
    const link = new RedisLink(namespace, options.log, events)
    const pair = await RedisPair.open(
      // Not the channel of any key.
      { ...options, hasLog: true, isShard: false, heartbeatChannel: `${namespace}/${node}` },
      { ...events, message: (message) => link.#deliver(message) },
      signal,
    )
    link.#pair = pair
    using _listener = addAbortListener(signal, () => pair.destroy())
    try {
      await pair.log?.overhear()
      return link
    } catch (error) {
      pair.destroy()
      throw error
    }
  }

  bind(pattern: string): Promise<void> {
    return this.#subscriptions.bind(pattern)
  }

  unbind(pattern: string): Promise<void> {
    return this.#subscriptions.unbind(pattern)
  }

  get log(): LogLink | undefined {
    return this.#pair?.log
  }

  publish(message: LinkMessage): void {
    const log = message.isLogged ? this.#pair?.log : undefined
    if (log !== undefined) log.append(message)
    else this.#pair?.publisher.publish(this.#prefix + message.key, message)
  }

  async close(): Promise<void> {
    this.destroy()
  }

  destroy(): void {
    this.#pair?.destroy()
  }

  async #subscribe(pattern: string): Promise<void> {
    await this.#pair?.subscribe(...this.#channelOf(pattern))
    this.#foreignCopies.forget()
  }

  async #unsubscribe(pattern: string): Promise<void> {
    await this.#pair?.unsubscribe(...this.#channelOf(pattern))
  }

  #channelOf(pattern: string): readonly [kind: SubscriptionKind, name: string] {
    return isExact(pattern) ? ['channel', this.#prefix + pattern] : ['glob', this.#prefix + globOf(pattern)]
  }

  #deliver(message: ReceivedMessage): void {
    const { channel, payload } = message
    const key = channel.toString('utf8', this.#prefix.length)
    const delivery = decodeEnvelope(key, payload)
    if (delivery?.source !== undefined) this.#events.deliver(delivery)
    else if (!isUtf8(channel) || !isKey(key)) this.#events.malformed(`no key: ${key}`)
    else if (delivery === undefined)
      this.#events.malformed(`an envelope that is cut short or of another version, to ${key}`, key)
    else if (this.#foreignCopies.isFirst(message)) this.#deliverForeign(delivery)
  }

  /** To a logged key it would reach the present listeners, and nobody who resumes: neither replayed nor told. */
  #deliverForeign(delivery: LinkDelivery): void {
    const { key } = delivery
    if (!this.#logged.logs(key)) this.#events.deliver(delivery)
    else this.#events.malformed(`PUBLISH to ${key}, which is logged: the log's own script publishes there`, key)
  }
}

/**
 * Finds the copies of a message that another program published. Redis sends one copy for each subscription that
 * matches, and such a message has no sequence to tell the copies by.
 *
 * Redis sends all copies of a message one behind the other, each by another subscription. So a message is a copy of the
 * one before when channel and payload are the same and its subscription has not brought that one yet.
 *
 *     a.b "1" by a.*     first
 *     a.b "1" by *.b     copy
 *     a.b "1" by a.*     the next message, with the same payload
 */
export class ForeignCopies {
  #channel: Buffer | undefined
  #payload: Buffer | undefined
  /** Globs that have brought the last message; `undefined` for the channel itself. */
  readonly #broughtBy = new Set<string | undefined>()

  /** Whether this is the first copy of a message. Keeps the buffers until the next call. */
  isFirst({ channel, payload, glob }: ReceivedMessage): boolean {
    const isCopy =
      !this.#broughtBy.has(glob) && this.#channel?.equals(channel) === true && this.#payload?.equals(payload) === true
    if (!isCopy) this.#broughtBy.clear()
    this.#broughtBy.add(glob)
    this.#channel = channel
    this.#payload = payload
    return !isCopy
  }

  /**
   * A new subscription is live. It may bring the next message and not have brought the last one, which would make an
   * equal message look like a copy.
   */
  forget(): void {
    this.#channel = undefined
  }
}
