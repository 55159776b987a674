import { WebMQClient } from 'webmq-client'
import { plainWebSocket } from '../../../generator/bench-client.js'
import { nowUs } from '../../../measure/clock.js'
import { DeliveryTracker, type DeliveryVerdict } from '../../../measure/delivery-tracker.js'
import { itemKey } from '../bidding.js'

/** What a watcher tells its thread. */
export interface WatcherSink {
  received(item: number, seq: number, sentUs: number, verdict: DeliveryVerdict): void
  /** It is live again after a connection was lost. */
  liveAgain(afterUs: number): void
  gap(): void
  error(): void
}

/** Who watches what, and where. */
export interface WatcherOptions {
  readonly number: number
  readonly item: number
  readonly urls: readonly string[]
  readonly hasTls: boolean
  readonly sink: WatcherSink
}

interface AuctionEvent {
  readonly seq: number
  readonly ts_us: number
}

/** One real client that watches an item and moves to another node when its own leaves. */
export class Watcher {
  readonly #options: WatcherOptions
  readonly #client: WebMQClient
  readonly #tracker = new DeliveryTracker(1, 1)
  #attemptCount = 0
  #lostAtUs: number | undefined
  #isLive = false
  /** The highest number so far. */
  #lastSeq = 0

  constructor(options: WatcherOptions) {
    this.#options = options
    const { sink, hasTls } = options
    this.#client = new WebMQClient({
      url: () => this.#nextUrl(),
      WebSocket: plainWebSocket(hasTls ? { rejectUnauthorized: false } : undefined),
    })
    this.#client.on('status', ({ state }, previous) => {
      if (previous.state !== 'connected' || state === previous.state) return
      this.#isLive = false
      this.#lostAtUs = nowUs()
    })
    this.#client.on('gap', () => sink.gap())
    this.#client.on('error', () => sink.error())
  }

  /** Resolves when the server has confirmed the listen. */
  async connect(): Promise<void> {
    const { item, sink } = this.#options
    await this.#client.connect()
    const subscription = this.#client.listen(itemKey(item), (payload) => this.#receive(payload as AuctionEvent))
    subscription.on('ready', () => {
      this.#isLive = true
      if (this.#lostAtUs !== undefined) sink.liveAgain(nowUs() - this.#lostAtUs)
      this.#lostAtUs = undefined
    })
    await subscription.ready
  }

  /** Whether it is live and has received this number. */
  hasHad(seq: number): boolean {
    return this.#isLive && this.#lastSeq >= seq
  }

  async close(): Promise<void> {
    await this.#client.close()
  }

  /** The nodes in turn. Clients of one node go on to different ones. */
  #nextUrl(): string {
    const { number, urls } = this.#options
    const step = 1 + (Math.floor(number / urls.length) % Math.max(1, urls.length - 1))
    const url = urls[(number + this.#attemptCount++ * step) % urls.length]
    if (url === undefined) throw new Error('there are no nodes')
    return url
  }

  #receive({ seq, ts_us }: AuctionEvent): void {
    const { item, sink } = this.#options
    this.#lastSeq = Math.max(this.#lastSeq, seq)
    sink.received(item, seq, ts_us, this.#tracker.record(0, 0, seq - 1))
  }
}
