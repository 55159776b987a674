import type { Listener, ListenerOptions } from '../../../packages/check/src/actors/listener.js'
import type { ListenerEvent, ListenerRecord } from '../../../packages/check/src/judging/record.js'
import { Door } from './door.js'
import { CommandError, DrivenClient, type DrivenOptions, receivedOf } from './drive.js'

/** How far back {@link ClientListener.relisten} goes at most. */
const RELISTEN_COUNT = 500
/** How long it listens a second time, at most. */
const RELISTEN_MS = 1_500
/** Of every second listener: more come at once, and the client gets them from the log. */
const FEW_WAITING = 10

type Item = { readonly [name: string]: unknown }

/** A {@link Listener} whose listens are those of a client in another program. */
export class ClientListener implements Pick<Listener, keyof Listener> {
  readonly record: ListenerRecord
  readonly #options: ListenerOptions & DrivenOptions
  readonly #patterns: string[]
  readonly #client: DrivenClient
  readonly #live = new Set<number>()
  readonly #recent: string[] = []
  #door: Door | undefined

  constructor(options: ListenerOptions & DrivenOptions) {
    this.#options = options
    this.#patterns = options.listens.map(({ pattern }) => pattern)
    this.#client = new DrivenClient(options)
    this.record = { name: options.name, patterns: this.#patterns, isOfClient: true, events: [] }
    options.record.listeners.push(this.record)
  }

  start(): void {
    this.#client.run(async () => {
      this.#door = await Door.open(this.#options)
      await this.#client.call('connect', { url: this.#door.url })
      for (const [index, { pattern, start }] of this.#options.listens.entries()) {
        this.#client.run(() => this.#listen(index, pattern, start === 'now' ? {} : start))
      }
    })
  }

  get isLive(): boolean {
    return this.#door?.isOpen === true && this.#options.listens.every((_, index) => this.#live.has(index))
  }

  cut(): void {
    this.#door?.cut()
  }

  stall(forMs: number): void {
    this.#door?.stall(forMs, this.#options.nowMs)
  }

  move(): void {
    this.#door?.cut('move')
  }

  /** A client that is driven lives on: nothing of it is forgotten. */
  reload(): void {
    this.#door?.cut('reload')
  }

  moveDuringReplay(count = 1): void {
    this.#door?.cutDuringReplay(count)
  }

  /** Listens once more to one of its patterns, from an earlier position, for some time. */
  relisten(): void {
    const { random, listens } = this.#options
    const { pattern } = listens[Math.floor(random() * listens.length)] ?? {}
    const since = this.#recent[Math.floor(random() * this.#recent.length)]
    if (pattern === undefined || since === undefined) return
    const index = this.#patterns.push(pattern) - 1
    this.#client.run(() => this.#listen(index, pattern, { since }))
    const leave = async () => {
      if (this.#client.isStopped || !this.#live.delete(index)) return
      await this.#client.call('unlisten', { listener: this.#named(index) })
      this.#note({ what: 'left', listen: index })
    }
    setTimeout(() => this.#client.run(leave), random() * RELISTEN_MS)
  }

  async stop(): Promise<void> {
    await this.#client.stop()
    this.#door?.close()
  }

  #named(index: number): string {
    return `${this.#client.name}/${index}`
  }

  async #listen(
    index: number,
    pattern: string,
    start: { readonly since?: string; readonly rewindMs?: number; readonly last?: number },
  ): Promise<void> {
    this.#note({ what: 'asked', listen: index, isPage: false, ...start })
    const listener = this.#named(index)
    try {
      const few = index % 2 === 1 ? { maxWaiting: FEW_WAITING } : {}
      const { position } = await this.#client.call('listen', { listener, pattern, ...start, ...few })
      this.#live.add(index)
      const began = typeof position === 'string' ? position : undefined
      this.#note({ what: 'ok', listen: index, position: began, ...NOTHING_KNOWN })
      while (!this.#client.isStopped) {
        const { items } = await this.#client.call('take', { listener })
        for (const item of items as readonly Item[]) {
          if (item.ended !== undefined) return
          this.#take(index, item)
        }
      }
    } catch (error) {
      if (!(error instanceof CommandError)) throw error
      if (!this.#client.isStopped) {
        this.#note({ what: 'refused', listen: index, code: error.code, isRetryable: error.isRetryable })
      }
    }
  }

  #take(index: number, { gap, key, payload, position, isReplay }: Item): void {
    if (typeof gap === 'string') {
      this.#note({ what: 'gap', listen: index, reason: gap })
      return
    }
    const received = receivedOf(key, payload, position)
    this.#note({ what: 'message', listen: index, isReplay: isReplay === true, ...received })
    if (typeof position !== 'string') return
    this.#recent.push(position)
    if (this.#recent.length > RELISTEN_COUNT) this.#recent.shift()
  }

  #note(event: DistributiveOmit<ListenerEvent, 'atMs' | 'connection'>): void {
    const at = { atMs: this.#options.nowMs(), connection: this.#door?.number ?? -1 }
    this.record.events.push({ ...at, ...event } as ListenerEvent)
  }
}

/** What an answer to a listen says on the wire, and no client tells. */
const NOTHING_KNOWN = { isRecovered: false, gap: undefined, replayed: 0, isMore: false } as const

/** `Omit` that keeps the members of a union apart. */
type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never
