import { isUtf8 } from 'node:buffer'
import { isKey } from 'webmq-client/protocol'
import { Router } from '../../patterns/router.js'
import { Cover } from '../remote/cover.js'
import { decodeEnvelope } from '../remote/envelope.js'
import type { Link, LinkEvents, LinkMessage, LogFollower, LogPlace } from '../remote/link.js'
import { GlobBudget } from './glob-budget.js'
import type { RedisLog } from './log.js'
import { LogLink } from './log-link.js'
import { RedisPair, type RedisPairOptions } from './pair.js'
import { globOf, isExact, redisReaches } from './patterns.js'
import type { PushedMessage } from './subscriber.js'

/** A link to one Redis: channel `namespace:key`. */
export class RedisLink implements Link {
  readonly #events: LinkEvents
  readonly #prefix: string
  readonly #cover = new Cover({
    reachesOf: redisReaches,
    subscribe: (reach) => this.#subscribe(reach),
    unsubscribe: (reach) => this.#unsubscribe(reach),
  })
  /** Exactly what is live where the stream of messages has come to. */
  readonly #liveChannels = new Set<string>()
  readonly #liveGlobs = new Map<string, number>()
  readonly #liveReaches = new Router()
  /** Globs that stand for many, by what they reach: whether they are allowed. */
  readonly #broadened = new Map<string, Promise<boolean>>()
  readonly #budget = new GlobBudget({
    replace: (reach) => {
      // Refused or lost, the narrower ones stay.
      const isBound = this.#cover.bind(reach).then(
        () => true,
        () => false,
      )
      this.#broadened.set(reach, isBound)
    },
    restore: (reach) => void this.#restore(reach),
  })
  #pair: RedisPair | undefined
  #log: LogLink | undefined
  /** Of the last message that was accepted, until it is told. */
  #acceptedSequence = 0
  readonly #confirm = () => {
    const sequence = this.#acceptedSequence
    this.#acceptedSequence = 0
    if (sequence > 0) this.#events.confirmed(sequence, true)
  }

  private constructor(namespace: string, events: LinkEvents) {
    this.#prefix = `${namespace}:`
    this.#events = events
  }

  static async open(
    options: Omit<RedisPairOptions, 'isShard' | 'heartbeatChannel'> & { readonly log: RedisLog | undefined },
    events: LinkEvents,
    signal: AbortSignal,
  ): Promise<RedisLink> {
    const { namespace, node } = options.context
    const link = new RedisLink(namespace, events)
    const pair = await RedisPair.open(
      // Not one of a key.
      { ...options, isShard: false, heartbeatChannel: `${namespace}/${node}` },
      {
        message: (message) => link.#deliver(message),
        accepted: (sequence) => link.#accepted(sequence),
        logged: (sequence, accepted) => {
          link.#confirm()
          link.#log?.accepted(sequence, accepted)
        },
        refused: (sequence, cause) => {
          link.#confirm()
          events.refused(sequence, cause)
        },
        lost: (cause) => {
          link.#confirm()
          events.lost(cause)
        },
      },
      signal,
    )
    link.#pair = pair
    const { log } = options
    if (log !== undefined) link.#log = new LogLink({ log, pair, kind: 'channel', events })
    return link
  }

  async bind(pattern: string): Promise<void> {
    for (const reach of globReaches(pattern)) this.#budget.add(reach)
    try {
      await this.#cover.bind(pattern)
    } catch (error) {
      for (const reach of globReaches(pattern)) this.#budget.delete(reach)
      throw error
    }
  }

  async unbind(pattern: string): Promise<void> {
    const unbound = this.#cover.unbind(pattern)
    for (const reach of globReaches(pattern)) this.#budget.delete(reach)
    await unbound
  }

  async follow(after: LogPlace | undefined, follower: LogFollower): Promise<void> {
    await this.#log?.follow(after, follower)
  }

  publish(message: LinkMessage): void {
    if (message.isLogged && this.#log !== undefined) this.#log.append(message)
    else this.#pair?.publisher.publish(this.#prefix + message.key, message)
  }

  async close(): Promise<void> {
    await this.#pair?.close()
  }

  async #restore(reach: string): Promise<void> {
    const isBound = this.#broadened.get(reach)
    this.#broadened.delete(reach)
    // Fails when the link is lost, or a narrower one is refused: then the broader one stays.
    if (await isBound) await this.#cover.unbind(reach).catch(() => undefined)
  }

  async #subscribe(reach: string): Promise<void> {
    if (isExact(reach)) {
      await this.#pair?.subscribe('channel', this.#prefix + reach, () => this.#liveChannels.add(reach))
      return
    }
    const glob = this.#prefix + globOf(reach)
    await this.#pair?.subscribe('glob', glob, () => this.#liveGlobs.set(glob, this.#liveReaches.add(reach).group))
  }

  async #unsubscribe(reach: string): Promise<void> {
    if (isExact(reach)) {
      await this.#pair?.unsubscribe('channel', this.#prefix + reach, () => this.#liveChannels.delete(reach))
      return
    }
    const glob = this.#prefix + globOf(reach)
    await this.#pair?.unsubscribe('glob', glob, () => {
      this.#liveGlobs.delete(glob)
      this.#liveReaches.remove(reach)
    })
  }

  #deliver(message: PushedMessage): void {
    const { bytes, channelStart, channelEnd, payloadStart, payloadEnd } = message
    if (this.#log?.take(message) === true) return
    const key = bytes.toString('utf8', channelStart + this.#prefix.length, channelEnd)
    const delivery = decodeEnvelope(key, bytes, payloadStart, payloadEnd)
    if (delivery === undefined) this.#events.malformed(`an envelope that is cut short or of another version, to ${key}`)
    else if (delivery.source !== undefined) this.#events.deliver(delivery)
    else if (!isUtf8(bytes.subarray(channelStart, channelEnd)) || !isKey(key)) this.#events.malformed(`no key: ${key}`)
    else if (this.#isFirstCopy(key, message)) this.#events.deliver(delivery)
  }

  /**
   * Whether this is the copy to keep, of those that come because several subscriptions match: all come, one behind the other, and which
   * subscriptions are live is known exactly.
   */
  #isFirstCopy(key: string, { bytes, globStart, globEnd }: PushedMessage): boolean {
    if (globStart === globEnd) return true
    if (this.#liveChannels.has(key)) return false
    const glob = bytes.toString('utf8', globStart, globEnd)
    return this.#liveGlobs.get(glob) === Math.min(...this.#liveReaches.match(key))
  }

  /** Replies that were read together are told together, before anything else is read. */
  #accepted(sequence: number): void {
    if (this.#acceptedSequence === 0) queueMicrotask(this.#confirm)
    this.#acceptedSequence = sequence
  }
}

function globReaches(pattern: string): readonly string[] {
  return redisReaches(pattern).filter((reach) => !isExact(reach))
}
