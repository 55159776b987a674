import { Redis, type Result } from 'ioredis'
import type { AuctionEvent, ItemOpened } from '../src/events'
import type { BidInput, ItemInput } from './input'
import type { Keys } from './keys'
import { KEEP_CLOSED_MS, MAX_BIDS_PER_ITEM, MAX_OPEN_ITEMS, MAX_WAITING_EVENTS } from './limits'
import { Refusal } from './refusal'
import { BID, CLOSE, HOLD, OPEN, RELEASE } from './scripts'

declare module 'ioredis' {
  interface RedisCommander<Context> {
    openItem(...args: (string | number)[]): Result<[string, string?], Context>
    placeBid(...args: (string | number)[]): Result<[string, string?, string?], Context>
    closeItem(...args: (string | number)[]): Result<number, Context>
    holdLease(...args: (string | number)[]): Result<number, Context>
    releaseLease(...args: (string | number)[]): Result<number, Context>
  }
}

/** A command that Redis does not answer fails after this. It may have been done: who retries must be known. */
const COMMAND_TIMEOUT_MS = 2_000
/** A connection that is silent for so long is replaced; each of ours asks at least twice a second. */
const SILENCE_MS = 5_000
const RECONNECT_MS = 100

/** The first answer to an accepted bid. */
export interface Accepted {
  readonly seq: number
  readonly amount: number
  readonly tsUs: number
}

export interface Item extends ItemOpened {
  readonly seq: number
  /** 0 before the first bid. */
  readonly highest: number
  readonly bidder: string | null
  readonly isClosed: boolean
}

/** A connection to Redis that fails at once while Redis is away, rather than let commands pile up. */
export function connect(url: string): Redis {
  const redis = new Redis(url, {
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    commandTimeout: COMMAND_TIMEOUT_MS,
    socketTimeout: SILENCE_MS,
    retryStrategy: () => RECONNECT_MS,
    scripts: { openItem: OPEN, placeBid: BID, closeItem: CLOSE, holdLease: HOLD, releaseLease: RELEASE },
  })
  // Every command says so too, and `/health`.
  redis.on('error', () => undefined)
  return redis
}

/** The items and bids in Redis. */
export class Store {
  readonly #redis: Redis
  readonly #keys: Keys

  constructor(redis: Redis, keys: Keys) {
    this.#redis = redis
    this.#keys = keys
  }

  /** @throws {Refusal} `exists`, `full` */
  async open({ id, endsInMs, startPrice }: ItemInput): Promise<ItemOpened> {
    const keys = this.#keys
    const args = [id, endsInMs * 1_000, startPrice, MAX_OPEN_ITEMS]
    const [outcome, endsUs] = await this.#redis.openItem(keys.item(id), keys.due, keys.outbox, ...args)
    if (outcome === 'exists') throw new Refusal(409, 'exists')
    if (outcome === 'full') throw new Refusal(429, 'full', { maxOpenItems: MAX_OPEN_ITEMS })
    return { id, startPrice, endsUs: Number(endsUs) }
  }

  /** @throws {Refusal} `unknown-item`, `closed`, `too-low`, `full`, `behind`, `bid-id-used` */
  async bid(id: string, bid: BidInput): Promise<Accepted & { readonly isKnown: boolean }> {
    const keys = this.#keys
    const limits = [MAX_BIDS_PER_ITEM, MAX_WAITING_EVENTS]
    const [outcome, one = '', two] = await this.#redis.placeBid(
      keys.item(id),
      keys.answers(id),
      keys.events(id),
      keys.outbox,
      ...[id, JSON.stringify(bid.bidder), bid.bidId, bid.amount, ...limits],
    )
    switch (outcome) {
      case 'unknown':
        throw new Refusal(404, 'unknown-item')
      case 'closed':
        throw new Refusal(410, 'closed')
      case 'too-low':
        throw new Refusal(409, 'too-low', { highest: Number(one), minimum: Number(two) })
      case 'full':
        throw new Refusal(429, 'full', { maxBids: MAX_BIDS_PER_ITEM })
      case 'behind':
        throw new Refusal(503, 'behind', { maxWaiting: MAX_WAITING_EVENTS })
    }
    const [seq, amount, tsUs] = one.split(' ').map(Number) as [number, number, number]
    if (amount !== bid.amount) throw new Refusal(422, 'bid-id-used')
    return { seq, amount, tsUs, isKnown: outcome === 'known' }
  }

  /** Closes what is due. Resolves with the end of the next item, in Unix milliseconds. */
  async closeDue(limit: number): Promise<number | undefined> {
    const keys = this.#keys
    const due = await this.#redis.zrange(keys.due, '0', String(limit - 1), 'WITHSCORES')
    for (let at = 0; at < due.length; at += 2) {
      const id = due[at] as string
      const args = [id, KEEP_CLOSED_MS]
      const item = [keys.item(id), keys.answers(id), keys.events(id)]
      const isClosed = await this.#redis.closeItem(...item, keys.outbox, keys.due, ...args)
      if (isClosed === 0) return Number(due[at + 1]) / 1_000
    }
    return due.length < limit * 2 ? undefined : 0
  }

  /** @throws {Refusal} `unknown-item` */
  async read(id: string): Promise<Item> {
    const item = await this.#redis.hgetall(this.#keys.item(id))
    if (item.endsUs === undefined) throw new Refusal(404, 'unknown-item')
    return itemOf(id, item)
  }

  /** All open items, the next to close first. */
  async openItems(): Promise<Item[]> {
    const ids = await this.#redis.zrange(this.#keys.due, '0', String(MAX_OPEN_ITEMS - 1))
    const pipeline = this.#redis.pipeline()
    for (const id of ids) pipeline.hgetall(this.#keys.item(id))
    const found = (await pipeline.exec()) ?? []
    return found.flatMap(([error, item], at) => {
      if (error) throw error
      const fields = item as Record<string, string>
      return fields.endsUs === undefined ? [] : [itemOf(ids[at] as string, fields)]
    })
  }

  /** The newest events of an item before a seq, oldest first. */
  async events(id: string, { before, limit }: { before: number; limit: number }): Promise<AuctionEvent[]> {
    const entries = await this.#redis.xrevrange(this.#keys.events(id), `(${before}-0`, '-', 'COUNT', limit)
    return entries.map(([, [, event]]) => JSON.parse(event as string)).reverse()
  }

  /** Unix microseconds of the clock that decides. */
  async nowUs(): Promise<number> {
    const [seconds, microseconds] = await this.#redis.time()
    return Number(seconds) * 1_000_000 + Number(microseconds)
  }

  /** Events that wait to be published. */
  async waitingCount(): Promise<number> {
    return await this.#redis.xlen(this.#keys.outbox)
  }
}

function itemOf(id: string, fields: Readonly<Record<string, string>>): Item {
  return {
    id,
    startPrice: Number(fields.startPrice),
    endsUs: Number(fields.endsUs),
    seq: Number(fields.seq),
    highest: Number(fields.highest),
    bidder: fields.bidder === '' ? null : JSON.parse(fields.bidder as string),
    isClosed: fields.isClosed === '1',
  }
}
