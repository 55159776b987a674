import type { WebhookClient } from './client.js'

/** Notices were dropped: there was no room, or the webhook did not take them. */
type OnDropped = (count: number, reason: 'full' | 'failed', error?: unknown) => void

const MAX_BATCH_COUNT = 100
const MAX_BATCH_BYTES = 262_144
/** A notice waits this long for others. */
const BATCH_MS = 50
const MAX_WAITING_COUNT = 10_000
const MAX_WAITING_BYTES = 8_388_608
/** A batch is sent so often, over about half a minute, then dropped. */
const MAX_ATTEMPTS = 8
const MIN_RETRY_MS = 250
const MAX_RETRY_MS = 10_000

/** The body of a request with these events. */
export function batchOf(events: readonly string[]): string {
  return `{"events":[${events.join(',')}]}`
}

/** Sends notices to a webhook: in order, several per request, again after a failure, and within bounds. */
export class Notices {
  readonly #client: Pick<WebhookClient, 'post'>
  readonly #onDropped: OnDropped
  #waiting: string[] = []
  #waitingBytes = 0
  #sentCount = 0
  #droppedCount = 0
  #isClosed = false
  /** Present while there is something to send. */
  #sending: Promise<void> | undefined
  #wake: (() => void) | undefined

  constructor(client: Pick<WebhookClient, 'post'>, onDropped: OnDropped) {
    this.#client = client
    this.#onDropped = onDropped
  }

  get stats(): { readonly sentCount: number; readonly droppedCount: number; readonly waitingCount: number } {
    return { sentCount: this.#sentCount, droppedCount: this.#droppedCount, waitingCount: this.#waiting.length }
  }

  /** Queues a notice, or drops it when too much waits. @param event JSON text. */
  push(event: string): void {
    // A UTF-16 unit takes up to three bytes.
    const byteCount = Buffer.byteLength(event)
    if (this.#waiting.length >= MAX_WAITING_COUNT || this.#waitingBytes + byteCount > MAX_WAITING_BYTES) {
      this.#drop(1, 'full')
      return
    }
    this.#waiting.push(event)
    this.#waitingBytes += byteCount
    this.#sending ??= this.#send().finally(() => {
      this.#sending = undefined
    })
  }

  /** Sends what waits, once, without delay. Resolves when that has ended. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#wake?.()
    await this.#sending
  }

  async #send(): Promise<void> {
    await this.#wait(BATCH_MS)
    while (this.#waiting.length > 0) {
      const batch = this.#takeBatch()
      await this.#sendBatch(batch)
    }
  }

  #takeBatch(): readonly string[] {
    let byteCount = 0
    let count = 0
    for (const event of this.#waiting) {
      const eventBytes = Buffer.byteLength(event)
      if (count > 0 && (count >= MAX_BATCH_COUNT || byteCount + eventBytes > MAX_BATCH_BYTES)) break
      byteCount += eventBytes
      count++
    }
    this.#waitingBytes -= byteCount
    return this.#waiting.splice(0, count)
  }

  async #sendBatch(batch: readonly string[]): Promise<void> {
    const body = batchOf(batch)
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#client.post(body)
        this.#sentCount += batch.length
        return
      } catch (error) {
        if (attempt >= MAX_ATTEMPTS || this.#isClosed) return this.#drop(batch.length, 'failed', error)
      }
      await this.#wait((0.5 + Math.random() / 2) * Math.min(MAX_RETRY_MS, MIN_RETRY_MS * 2 ** attempt))
    }
  }

  #wait(waitMs: number): Promise<void> {
    if (this.#isClosed) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, waitMs)
      timer.unref()
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  #drop(count: number, reason: 'full' | 'failed', error?: unknown): void {
    this.#droppedCount += count
    this.#onDropped(count, reason, error)
  }
}
