import { setTimeout as sleep } from 'node:timers/promises'
import { type Gap, WebMQClient } from 'webmq-client'
import { WebSocket } from 'ws'

const KEY = 'deploys'
const TICK_MS = 20
/** A publisher that waits for so many answers offers no more: it is the one who is slow. */
const MAX_UNANSWERED = 2_000
const FLOOD_UNANSWERED = 64

interface Payload {
  readonly publisher: number
  readonly number: number
}

/** Reconnects to the next node, as through a load balancer that has just heard of the one that is gone. */
function connect(urls: readonly string[], index: number): WebMQClient<object> {
  let next = index
  const url = () => urls[next++ % urls.length] ?? ''
  return new WebMQClient({ url, WebSocket, reconnect: { minMs: 100, maxMs: 2_000 } }) as WebMQClient<object>
}

/** Publishes numbers in order, and knows which were accepted. */
export class Publisher {
  readonly index: number
  readonly #client: WebMQClient<object>
  #number = 0
  #unanswered = 0
  /** Numbers that were refused, or whose answer never came: each may have arrived or not. */
  readonly unsure = new Set<number>()
  readonly errors: string[] = []
  heldBackCount = 0

  constructor(urls: readonly string[], index: number) {
    this.index = index
    this.#client = connect(urls, index)
  }

  get count(): number {
    return this.#number
  }

  get acceptedCount(): number {
    return this.#number - this.unsure.size - this.#unanswered
  }

  async #publish(): Promise<void> {
    const number = this.#number++
    this.#unanswered++
    const payload: Payload = { publisher: this.index, number }
    try {
      await this.#client.publish(`${KEY}.${this.index}`, payload)
    } catch (error) {
      this.unsure.add(number)
      this.errors.push(String(error))
    }
    this.#unanswered--
  }

  /** As fast as answers come. */
  async flood(untilMs: number): Promise<void> {
    const turn = async () => {
      while (performance.now() < untilMs) await this.#publish()
    }
    await Promise.all(Array.from({ length: FLOOD_UNANSWERED }, turn))
  }

  /** At a steady rate, whatever the answers do. */
  async steady(perSecond: number, untilMs: number): Promise<void> {
    const beganMs = performance.now()
    let offered = 0
    while (performance.now() < untilMs) {
      const due = Math.floor(((performance.now() - beganMs) / 1_000) * perSecond)
      for (; offered < due; offered++) {
        if (this.#unanswered < MAX_UNANSWERED) void this.#publish()
        else this.heldBackCount++
      }
      await sleep(TICK_MS)
    }
  }

  /** Waits until every publish has its answer. */
  async settled(limitMs: number): Promise<boolean> {
    const endMs = performance.now() + limitMs
    while (this.#unanswered > 0 && performance.now() < endMs) await sleep(TICK_MS)
    return this.#unanswered === 0
  }

  close(): Promise<void> {
    return this.#client.close()
  }
}

/** Hears all publishers, and knows what is missing, came twice, or came late. */
export class Listener {
  readonly #client: WebMQClient<object>
  readonly gaps: Gap[] = []
  readonly #next = new Map<number, number>()
  readonly #missing = new Map<number, Set<number>>()
  count = 0
  doubledCount = 0
  lateCount = 0

  constructor(urls: readonly string[], index: number) {
    this.#client = connect(urls, index)
    this.#client.on('gap', (gap) => this.gaps.push(gap))
  }

  async listen(): Promise<void> {
    await this.#client.listen(`${KEY}.#`, (payload) => this.#hear(payload as Payload)).ready
  }

  #hear({ publisher, number }: Payload): void {
    this.count++
    const next = this.#next.get(publisher) ?? 0
    const missing = this.#missing.get(publisher) ?? new Set<number>()
    this.#missing.set(publisher, missing)
    if (number < next) {
      if (missing.delete(number)) this.lateCount++
      else this.doubledCount++
      return
    }
    for (let each = next; each < number; each++) missing.add(each)
    this.#next.set(publisher, number + 1)
  }

  /** Accepted messages that have not come. */
  lost(publishers: readonly Publisher[]): number {
    let count = 0
    for (const { index, count: published, unsure } of publishers) {
      const missing = this.#missing.get(index) ?? new Set()
      for (const number of missing) if (!unsure.has(number)) count++
      for (let number = this.#next.get(index) ?? 0; number < published; number++) if (!unsure.has(number)) count++
    }
    return count
  }

  close(): Promise<void> {
    return this.#client.close()
  }
}
