import {
  type Gap,
  type ListenOptions,
  type ListenResult,
  type Message,
  type Subscription,
  WebMQClient,
} from 'webmq-client'
import { WebSocket } from 'ws'
import type { Payload } from './publisher.js'
import { type LinkFault, Relay } from './relay.js'
import type { Start } from './schedule.js'

/** For an answer to a heartbeat: half-open connections are found after this and the node's interval. */
const HEARTBEAT_TIMEOUT_MS = 60
/** A handshake that is swallowed is given up after this. */
const CONNECT_TIMEOUT_MS = 250

/** What a subscription was told, in order. Times are those of `performance.now()`. */
export type Entry =
  | { readonly what: 'message'; readonly payload: Payload; readonly message: Message<unknown>; readonly atMs: number }
  | { readonly what: 'gap'; readonly gap: Gap; readonly atMs: number }
  | { readonly what: 'ready'; readonly result: ListenResult; readonly atMs: number }

/** What one subscription has gone through, over all connections and clients. */
export interface Diary {
  readonly pattern: string
  readonly start: Start
  /** Whether its client listened with this pattern for the first time. One that begins anew may join its predecessor. */
  isFirst: boolean
  /** When the application asked for it. */
  askedAtMs: number
  readonly entries: Entry[]
}

interface Tracked {
  readonly diary: Diary
  subscription: Subscription
  /** Where to go on, as an application keeps it: where the last message was, or where its listen began. */
  position: string | undefined
}

/** A client that listens, and writes down what it is told. */
export class Listener {
  readonly #relay: Relay
  readonly #tracked: Tracked[] = []
  #client: WebMQClient

  private constructor(relay: Relay) {
    this.#relay = relay
    this.#client = this.#createClient()
  }

  /** @param target Port of the node to connect to. */
  static async start(target: () => number | undefined): Promise<Listener> {
    return new Listener(await Relay.start(target))
  }

  get diaries(): Diary[] {
    return this.#tracked.map(({ diary }) => diary)
  }

  listen(pattern: string, start: Start): void {
    const isFirst = this.#tracked.every(({ diary }) => diary.pattern !== pattern)
    const diary: Diary = { pattern, start, isFirst, askedAtMs: performance.now(), entries: [] }
    const tracked: Partial<Tracked> & Pick<Tracked, 'diary'> = { diary, position: undefined }
    this.#tracked.push(this.#follow(tracked))
  }

  /** Does something to its connection. */
  inflict(fault: LinkFault): void {
    this.#relay.inflict(fault)
  }

  /** Ends every stall. */
  resume(): void {
    this.#relay.resume()
  }

  /** Begins anew with another client, as a page that is loaded again: all that is left are the positions. */
  async renew(): Promise<void> {
    const closing = this.#client.close({ flushMs: 0 })
    this.#client = this.#createClient()
    for (const tracked of this.#tracked) {
      const { diary, position } = tracked
      if (position === undefined) {
        // It has nothing to go on from: this is a new beginning.
        diary.entries.length = 0
        diary.askedAtMs = performance.now()
        diary.isFirst = false
      }
      this.#follow(tracked)
    }
    await closing
  }

  /** Whether every subscription is live. */
  get isLive(): boolean {
    return !this.#relay.isHalfOpen && this.#tracked.every(({ subscription }) => subscription.state === 'active')
  }

  async stop(): Promise<void> {
    await this.#client.close({ flushMs: 0 })
    await this.#relay.stop()
  }

  #createClient(): WebMQClient {
    return new WebMQClient({
      url: this.#relay.url,
      WebSocket,
      reconnect: { minMs: 2, maxMs: 50 },
      heartbeatTimeoutMs: HEARTBEAT_TIMEOUT_MS,
      connectTimeoutMs: CONNECT_TIMEOUT_MS,
    })
  }

  #follow(tracked: Pick<Tracked, 'diary'> & Partial<Tracked>): Tracked {
    const { diary, position: since } = tracked
    const { pattern, start, entries } = diary
    const options = since === undefined ? optionsOf(start) : { since }
    const note = (payload: unknown, message: Message<unknown>) => {
      entries.push({ what: 'message', payload: payload as Payload, message, atMs: performance.now() })
      tracked.position = message.position
    }
    const subscription = this.#client.listen<string>(pattern, note, options)
    subscription.on('gap', (gap) => entries.push({ what: 'gap', gap, atMs: performance.now() }))
    const begun = (result: ListenResult) => {
      entries.push({ what: 'ready', result, atMs: performance.now() })
      if (result.replayed === 0) tracked.position = result.position
    }
    // One that joins another is live before anybody can listen to its events.
    if (subscription.state === 'active') void subscription.ready.then(begun)
    subscription.on('ready', begun)
    return Object.assign(tracked, { subscription, position: since })
  }
}

function optionsOf(start: Start): ListenOptions {
  switch (start.from) {
    case 'now':
      return {}
    case 'last':
      return { last: start.count }
    case 'time':
      return { rewind: start.rewindMs }
  }
}
