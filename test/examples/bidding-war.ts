import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { WebMQClient } from 'webmq-client'
import { WebSocket } from 'ws'
import type { AuctionEvent } from '../../examples/auction/src/events.js'

/** The first answer to an accepted bid. */
export interface AcceptedBid {
  readonly item: string
  readonly bid: { readonly bidId: string; readonly bidder: string; readonly amount: number }
  readonly answer: unknown
}

/** Pause after an answer that was none; the gateway or Redis is away. */
const RETRY_MS = 25
const REQUEST_TIMEOUT_MS = 5_000

/** A client that listens to all bids and keeps what it gets; it comes back to another node when it loses one. */
export class Watcher {
  readonly seen = new Map<string, AuctionEvent[]>()
  readonly client: WebMQClient<{ 'auction.*.bid': AuctionEvent }>
  readonly ready: Promise<unknown>
  gapCount = 0

  constructor(ports: readonly (string | undefined)[]) {
    let attempts = 0
    this.client = new WebMQClient({ url: () => `ws://127.0.0.1:${ports[attempts++ % ports.length]}/ws`, WebSocket })
    // It says so when a node is away.
    this.client.on('error', () => undefined)
    const subscription = this.client.listen('auction.*.bid', (event) => {
      const events = this.seen.get(event.item) ?? []
      this.seen.set(event.item, [...events, event])
    })
    subscription.on('gap', () => this.gapCount++)
    this.ready = subscription.ready
  }

  count(item: string): number {
    return this.seen.get(item)?.length ?? 0
  }
}

/** Bidders that outbid each other over HTTP, and try each bid until it has an answer. */
export class BiddingWar {
  readonly accepted: AcceptedBid[] = []
  refusedCount = 0
  retryCount = 0
  readonly #gatewayPorts: readonly string[]
  #requestCount = 0
  readonly #items: readonly string[]
  /** What the bidders know. */
  readonly #highest = new Map<string, number>()
  #isOver = false
  #bidders: Promise<void>[] = []

  constructor(gatewayPorts: readonly string[], items: readonly string[], startPrice: number) {
    this.#gatewayPorts = gatewayPorts
    this.#items = items
    for (const item of items) this.#highest.set(item, startPrice)
  }

  begin(bidderCount: number): void {
    this.#bidders = Array.from({ length: bidderCount }, (_, index) => this.#bidOn(`bidder ${index}`, index))
  }

  /** Resolves when all bids have their answers. */
  async end(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#bidders)
  }

  /** The status and the answer of a request that is sent until it has one, to the gateways in turn. */
  async post(path: string, body: object): Promise<{ readonly status: number; readonly answer: unknown }> {
    for (;;) {
      try {
        const port = this.#gatewayPorts[this.#requestCount++ % this.#gatewayPorts.length]
        const response = await fetch(`http://127.0.0.1:${port}${path}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
          signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
        })
        const answer = await response.json()
        if (response.status !== 503) return { status: response.status, answer }
      } catch {
        // The gateway was killed before it answered, and the same bid is tried again.
      }
      this.retryCount++
      await sleep(RETRY_MS)
    }
  }

  async #bidOn(bidder: string, index: number): Promise<void> {
    for (let round = index; !this.#isOver; round++) {
      const item = this.#items[round % this.#items.length] as string
      const amount = this.#highestOf(item) + 1 + (round % 3)
      const bid = { bidId: randomUUID(), bidder, amount }
      const { status, answer } = await this.post(`/items/${item}/bids`, bid)
      if (status === 409) this.refusedCount++
      else if (status < 300) this.accepted.push({ item, bid, answer })
      else throw new Error(`${status} ${JSON.stringify(answer)}`)
      this.#highest.set(item, Math.max(this.#highestOf(item), amount))
    }
  }

  #highestOf(item: string): number {
    return this.#highest.get(item) ?? 0
  }
}
