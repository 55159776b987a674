import * as Y from 'yjs'
import { backoffMs } from '../../core/connection/backoff.js'
import { WebMQError } from '../../protocol/errors.js'

/** Updates of so much time are merged to one message: that of a frame on screen. */
const MERGE_MS = 16
/** Most updates merged at once. Without a connection, the waiting update has the size of the edits, not of their number. */
const MAX_WAITING = 100
const RETRY = { minMs: 500, maxMs: 20_000 }

/** Collaborators of {@link Outgoing}. */
export interface OutgoingContext {
  readonly random: () => number
  /** Whether there is a connection. */
  isLive(): boolean
  /** Publishes an update. Resolves once the broker has all of it. */
  publish(update: Uint8Array): Promise<void>
  report(error: unknown): void
}

/** Publishes updates one after the other, merges those that wait, and keeps those that fail. */
export class Outgoing {
  readonly #context: OutgoingContext
  #waiting: Uint8Array[] = []
  #timer: ReturnType<typeof setTimeout> | undefined
  #sending: Promise<void> | undefined
  #isFinished = false
  #failures = 0

  constructor(context: OutgoingContext) {
    this.#context = context
  }

  /** Whether the broker has everything. */
  get isEmpty(): boolean {
    return this.#waiting.length === 0 && !this.#sending
  }

  add(update: Uint8Array): void {
    this.#waiting.push(update)
    if (this.#waiting.length > MAX_WAITING) this.#waiting = [Y.mergeUpdates(this.#waiting)]
    if (this.#failures === 0) this.#wake(MERGE_MS)
  }

  /** A connection is live. */
  up(): void {
    this.#failures = 0
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#wake(0)
  }

  /** Publishes what waits, once. */
  async finish(): Promise<void> {
    clearTimeout(this.#timer)
    this.#isFinished = true
    await this.#sending
    await this.#send()
  }

  #wake(inMs: number): void {
    if (this.#isFinished || this.#sending || this.#timer !== undefined) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      if (this.#waiting.length === 0 || !this.#context.isLive()) return
      this.#sending = this.#send().then((retryInMs) => {
        this.#sending = undefined
        if (this.#waiting.length > 0 && retryInMs !== undefined) this.#wake(retryInMs)
      })
    }, inMs)
  }

  /** @returns When to send what waits then; `undefined`: not before the next connection. */
  async #send(): Promise<number | undefined> {
    if (this.#waiting.length === 0 || !this.#context.isLive()) return undefined
    const update = Y.mergeUpdates(this.#waiting.splice(0))
    try {
      await this.#context.publish(update)
      this.#failures = 0
      return MERGE_MS
    } catch (error) {
      // A second copy does no harm: an update that is known changes nothing.
      this.#waiting.unshift(update)
      const attempt = this.#failures++
      if (error instanceof WebMQError && error.retryable) {
        return backoffMs(attempt, { ...RETRY, random: this.#context.random })
      }
      // It would be refused again. The next connection may have another token.
      this.#context.report(error)
      return undefined
    }
  }
}
