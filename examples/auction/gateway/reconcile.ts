import { Redis } from 'ioredis'
import type { AuctionEvent } from '../src/events.js'
import { Keys } from './keys.js'

/** The events of each item, in order: those that Redis has recorded, or those that a client has got. */
export type EventsByItem = ReadonlyMap<string, readonly AuctionEvent[]>

/** Differences between the events of one client and the record in Redis, or what is wrong in the record itself. */
export interface Difference {
  /** `redis` for the record. */
  readonly client: string
  readonly item: string
  readonly seq: number
  /**
   * `missing` at the client or in the numbers of the record; `double`; `out-of-order`; `different` content; `unknown` to
   * Redis; `not-higher`: a bid that should have been refused; `after-closing`.
   */
  readonly kind: 'missing' | 'double' | 'out-of-order' | 'different' | 'unknown' | 'not-higher' | 'after-closing'
}

const PAGE_SIZE = 1_000

/** Reads every event that Redis has recorded for the items. */
export async function readRecord(redisUrl: string, namespace: string, items: Iterable<string>): Promise<EventsByItem> {
  const redis = new Redis(redisUrl)
  try {
    const keys = new Keys(namespace)
    const record = new Map<string, AuctionEvent[]>()
    for (const item of items) record.set(item, await readEvents(redis, keys.events(item)))
    return record
  } finally {
    redis.disconnect()
  }
}

async function readEvents(redis: Redis, key: string): Promise<AuctionEvent[]> {
  const events: AuctionEvent[] = []
  for (let from = '-'; ; ) {
    const page = await redis.xrange(key, from, '+', 'COUNT', PAGE_SIZE)
    for (const [, [, event]] of page) events.push(JSON.parse(event as string))
    if (page.length < PAGE_SIZE) return events
    from = `(${page.at(-1)?.[0]}`
  }
}

/**
 * Compares the record of Redis with what clients have got that listened from before the first event until after the last
 * one. Every event belongs to each client once, in the order of its seq.
 */
export function reconcile(record: EventsByItem, clients: ReadonlyMap<string, EventsByItem>): Difference[] {
  const differences = [...record].flatMap(([item, events]) => defectsOf(item, events))
  for (const [client, seen] of clients) {
    for (const item of new Set([...record.keys(), ...seen.keys()])) {
      differences.push(...differencesOf(client, item, record.get(item) ?? [], seen.get(item) ?? []))
    }
  }
  return differences
}

/** A line for each difference, at most `limit`. */
export function report(differences: readonly Difference[], limit = 20): string {
  const lines = differences.slice(0, limit).map(({ client, item, seq, kind }) => `${client}: ${item} ${seq} ${kind}`)
  if (differences.length > limit) lines.push(`and ${differences.length - limit} more`)
  return lines.join('\n')
}

/** The record alone: numbered without holes, each bid higher than the last, and nothing after the closing. */
function defectsOf(item: string, events: readonly AuctionEvent[]): Difference[] {
  const defects: Difference[] = []
  let [last] = events
  for (const [at, event] of events.entries()) {
    const add = (kind: Difference['kind']) => defects.push({ client: 'redis', item, seq: event.seq, kind })
    if (event.seq !== at + 1) add('missing')
    if (at === 0 || last === undefined) continue
    if (last.type === 'closed') add('after-closing')
    else if (event.type === 'bid' && event.amount <= last.amount) add('not-higher')
    else if (event.type === 'closed' && event.winner !== last.bidder) add('different')
    last = event
  }
  return defects
}

function differencesOf(
  client: string,
  item: string,
  recorded: readonly AuctionEvent[],
  seen: readonly AuctionEvent[],
): Difference[] {
  const differences: Difference[] = []
  const expected = new Map(recorded.map((event) => [event.seq, JSON.stringify(event)]))
  const had = new Set<number>()
  let highest = 0
  for (const event of seen) {
    const { seq } = event
    const add = (kind: Difference['kind']) => differences.push({ client, item, seq, kind })
    if (had.has(seq)) add('double')
    else if (seq < highest) add('out-of-order')
    const text = expected.get(seq)
    if (text === undefined) add('unknown')
    else if (text !== JSON.stringify(event)) add('different')
    had.add(seq)
    highest = Math.max(highest, seq)
  }
  for (const seq of expected.keys()) if (!had.has(seq)) differences.push({ client, item, seq, kind: 'missing' })
  return differences
}
