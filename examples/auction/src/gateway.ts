import type { AuctionEvent, ItemOpened } from './events'

/** Attempts to tell the gateway of a bid; it may be starting again. */
const MAX_ATTEMPTS = 10
const MAX_PAUSE_MS = 2_000

/** The answer to a bid: accepted, or why not. */
export type Answer =
  | { readonly isAccepted: true; readonly seq: number }
  | { readonly isAccepted: false; readonly reason: string; readonly minimum?: number }

export const openItems = (signal: AbortSignal) => get<readonly ItemOpened[]>('/items', signal)

export const openItem = (item: { readonly id: string; readonly endsInMs: number; readonly startPrice: number }) =>
  post('/items', item)

/** The newest events of an item before a seq, oldest first. */
export const eventsBefore = (id: string, seq: number, limit: number) =>
  get<readonly AuctionEvent[]>(`/items/${id}/events?before=${seq}&limit=${limit}`)

/** Unix milliseconds of the server, and how wrong they may be. */
export async function serverTime(): Promise<{ readonly offsetMs: number; readonly errorMs: number }> {
  const sentMs = Date.now()
  const { unixUs } = await get<{ readonly unixUs: number }>('/time')
  const errorMs = (Date.now() - sentMs) / 2
  return { offsetMs: unixUs / 1_000 - sentMs - errorMs, errorMs }
}

/** Bids until there is an answer. All attempts have one id, so the gateway takes the bid at most once. */
export async function placeBid(item: string, bidder: string, amount: number): Promise<Answer> {
  const bid = { bidId: crypto.randomUUID(), bidder, amount }
  for (let attempt = 1; ; attempt++) {
    const response = await post(`/items/${item}/bids`, bid).catch(() => undefined)
    if (response !== undefined && response.status < 500) {
      return { isAccepted: response.ok, ...(await response.json()) }
    }
    if (attempt === MAX_ATTEMPTS) return { isAccepted: false, reason: 'unavailable' }
    await new Promise((resolve) => setTimeout(resolve, Math.random() * Math.min(MAX_PAUSE_MS, 100 * 2 ** attempt)))
  }
}

async function get<T>(path: string, signal: AbortSignal | null = null): Promise<T> {
  const response = await fetch(`/gateway${path}`, { signal })
  if (!response.ok) throw new Error(`${path}: ${response.status}`)
  return await response.json()
}

const post = (path: string, body: unknown) =>
  fetch(`/gateway${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
