import type { ListenerEvent, ListenerRecord, Received, Selection } from '../judging/record.js'
import { type ActorOptions, Reconnecting } from './actor.js'
import type { Connection } from './connection.js'
import { readPages } from './read-pages.js'
import { TrackedListen } from './tracked-listen.js'
import { selectionOptions } from './wire.js'

/** Where a listen begins the first time. Later it continues from its position. */
export type Start = 'now' | { readonly rewindMs: number } | { readonly last: number }

export interface ListenerOptions extends ActorOptions {
  /** All of them are listened to together, on one connection. */
  readonly listens: readonly { readonly pattern: string; readonly start: Start }[]
  /** Interval of its pings. Default 500. */
  readonly pingIntervalMs?: number
  /** A connection from which nothing comes for so long after a ping is lost. Default 5,000. */
  readonly pongTimeoutMs?: number
  /** A `listen` that is not answered for so long ends the connection. Default 15,000. */
  readonly answerTimeoutMs?: number
}

/** After an error that is retryable. */
const RETRY_DELAY_MS = 150
const DEFAULTS = { pingIntervalMs: 500, pongTimeoutMs: 5_000, answerTimeoutMs: 15_000 }
/** How far back {@link Listener.relisten} goes at most. */
const RELISTEN_COUNT = 500

/** Listens with several patterns over connections that end, and continues each from its position. */
export class Listener {
  readonly record: ListenerRecord
  readonly #options: ListenerOptions
  readonly #listens: readonly TrackedListen[]
  readonly #connection: Reconnecting
  /** The last live positions, to go back to. */
  readonly #recent: string[] = []
  #movesLeft = 0

  constructor(options: ListenerOptions) {
    this.#options = options
    this.#listens = options.listens.map(({ pattern }) => new TrackedListen(pattern))
    this.record = { name: options.name, patterns: options.listens.map(({ pattern }) => pattern), events: [] }
    options.record.listeners.push(this.record)
    this.#connection = new Reconnecting(
      options,
      { ...DEFAULTS, ...pick(options) },
      {
        opened: () => {
          for (const index of this.#listens.keys()) this.#ask(index, this.#selection(index), false)
        },
        message: (message) => this.#live(message),
        gap: (pattern, reason) => this.#gap(pattern, reason),
        pong: (position) => {
          this.#note({ what: 'pong', position })
          if (position !== undefined) for (const listen of this.#listens) listen.ponged(position)
        },
        ended: () => {
          for (const listen of this.#listens) listen.isLive = false
          this.#note({ what: 'ended' })
        },
      },
    )
  }

  /** Connects, and listens. */
  start(): void {
    this.#connection.start()
  }

  /** Whether all its listens are live: answered without `more`, and all replayed messages have come. */
  get isLive(): boolean {
    return this.#connection.open !== undefined && this.#listens.every(({ isLive }) => isLive)
  }

  /** Ends its connection without a close frame. It connects again, to any node. */
  cut(): void {
    this.#connection.cut()
  }

  /** Does not read for some time: a node may close the connection with 4008. */
  stall(forMs: number): void {
    this.#connection.stall(forMs)
  }

  /** Leaves for another node. */
  move(): void {
    this.#connection.move()
  }

  /** Forgets its positions and begins anew, as a page does that is loaded again. */
  reload(): void {
    for (const listen of this.#listens) listen.position = undefined
    this.#recent.length = 0
    this.#connection.leave()
  }

  /** The next `count` times, it leaves for another node after the first replayed messages, in the middle of the replay. */
  moveDuringReplay(count = 1): void {
    this.#movesLeft = count
  }

  /** Listens once more to one of its patterns, from an earlier position, while it stays live. */
  relisten(): void {
    const connection = this.#connection.open
    const { random, nowMs, record, name } = this.#options
    const index = Math.floor(random() * this.#listens.length)
    const listen = this.#listens[index]
    const since = this.#recent[Math.floor(random() * this.#recent.length)]
    if (connection === undefined || listen?.isLive !== true || since === undefined) return
    const read = { owner: name, verb: 'listen' as const, pattern: listen.pattern, asked: { since }, pages: [] }
    record.reads.push(read)
    readPages(connection, read, nowMs)
  }

  /** Closes its connection. */
  async stop(): Promise<void> {
    this.#connection.stop()
  }

  #selection(index: number): Selection {
    const since = this.#listens[index]?.position
    if (since !== undefined) return { since }
    const start = this.#options.listens[index]?.start ?? 'now'
    return start === 'now' ? {} : start
  }

  #ask(index: number, asked: Selection, isPage: boolean): void {
    const connection = this.#connection.open
    const listen = this.#listens[index]
    if (connection === undefined || listen === undefined) return
    this.#note({ what: 'asked', listen: index, isPage, ...asked }, connection)
    let leaveAfter = Number.POSITIVE_INFINITY
    connection.request('listen', `${listen.pattern}${selectionOptions(asked)}`, {
      ok: (answer) => {
        this.#note({ what: 'ok', listen: index, ...answer })
        if (this.#movesLeft > 0 && answer.replayed > 1)
          leaveAfter = Math.ceil(this.#options.random() * (answer.replayed - 1))
      },
      replayed: (message) => {
        this.#note({ what: 'message', listen: index, ...message })
        listen.replayed(message.position)
        if (--leaveAfter === 0) {
          this.#movesLeft--
          this.#connection.cut('move')
        }
      },
      complete: ({ position, isMore }) => {
        listen.completed(position, isMore)
        if (isMore) this.#ask(index, position === undefined ? {} : { since: position }, true)
      },
      refused: (code, isRetryable) => {
        this.#note({ what: 'refused', listen: index, code, isRetryable })
        const again = () => {
          if (this.#connection.open === connection) this.#ask(index, this.#selection(index), isPage)
        }
        if (code === 'E_POSITION_INVALID') {
          listen.position = undefined
          this.#ask(index, {}, false)
        } else if (isRetryable) setTimeout(again, RETRY_DELAY_MS)
      },
    })
  }

  #live(message: Received): void {
    this.#note({ what: 'message', listen: undefined, ...message })
    for (const listen of this.#listens) listen.received(message.key, message.position)
    if (message.position === '-') return
    this.#recent.push(message.position)
    if (this.#recent.length > RELISTEN_COUNT) this.#recent.shift()
  }

  #gap(pattern: string, reason: string): void {
    const index = this.record.patterns.indexOf(pattern)
    const connection = this.#connection.open
    if (index >= 0) this.#note({ what: 'gap', listen: index, reason })
    else
      connection?.record.breaches.push({ atMs: this.#options.nowMs(), text: `gap of ${pattern}, which is no listen` })
  }

  #note(event: DistributiveOmit<ListenerEvent, 'atMs' | 'connection'>, connection?: Connection): void {
    const number = connection?.record.number ?? this.#connection.number
    this.record.events.push({ atMs: this.#options.nowMs(), connection: number, ...event } as ListenerEvent)
  }
}

/** `Omit` that keeps the members of a union apart. */
type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never

function pick(options: ListenerOptions): Partial<typeof DEFAULTS> {
  const { pingIntervalMs, pongTimeoutMs, answerTimeoutMs } = options
  return Object.fromEntries(
    Object.entries({ pingIntervalMs, pongTimeoutMs, answerTimeoutMs }).filter(([, value]) => value !== undefined),
  )
}
