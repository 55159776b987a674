import { backoffMs } from '../../core/connection/backoff.js'
import type { PublishResult } from '../../core/types.js'
import { type ErrorCode, WebMQError } from '../../protocol/errors.js'
import type { OutboxStore, StoredMessage } from './store.js'

/** Keys with a message in flight; each has one. */
const MAX_KEYS_IN_FLIGHT = 16

/** Errors that say: the server has not taken this message. */
const NOT_TAKEN: ReadonlySet<ErrorCode> = new Set(['E_OFFLINE', 'E_QUEUE_FULL', 'E_RATE_LIMIT'])

/** Errors after which the next connection goes on. */
const UNTIL_CONNECTED: ReadonlySet<ErrorCode> = new Set(['E_OFFLINE', 'E_DISCONNECTED', 'E_CLOSED'])

/** Collaborators of a sender. */
export interface SenderContext {
  readonly store: OutboxStore
  readonly maxAgeMs: number
  readonly afterWindow: 'report' | 'send'
  /** Waits after refusals that may pass. */
  readonly backoff: { readonly minMs: number; readonly maxMs: number; readonly random: () => number }
  publish(message: StoredMessage): Promise<PublishResult>
  /** Time for which the server remembers ids; 0: not at all. */
  dedupeWindowMs(): number
  /** Unix time. */
  nowMs(): number
  onSent(message: StoredMessage, result: PublishResult): void
  /** The message was removed, and will not be sent. */
  onFailed(message: StoredMessage, error: WebMQError): void
  /** The store has failed. */
  onError(error: unknown): void
}

/** Sends what the store has: in order within a key, each until it is confirmed or refused for good. */
export class Sender {
  readonly #context: SenderContext
  readonly #inFlight = new Set<string>()
  #queue: readonly StoredMessage[] = []
  #isOn = false
  #timer: ReturnType<typeof setTimeout> | undefined
  #refusedCount = 0
  #reading: Promise<void> | undefined
  #isStale = false

  constructor(context: SenderContext) {
    this.#context = context
  }

  /** This tab sends, and there is a connection. */
  start(): void {
    this.#isOn = true
    this.wake()
  }

  /** The connection is lost, or another tab sends. */
  stop(): void {
    this.#isOn = false
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  /** The store has changed. */
  wake(): void {
    if (!this.#isOn || this.#timer !== undefined) return
    this.#isStale = true
    this.#reading ??= this.#read()
  }

  async #read(): Promise<void> {
    try {
      while (this.#isStale) {
        this.#isStale = false
        this.#queue = await this.#context.store.list()
      }
    } catch (error) {
      this.#context.onError(error)
      this.#pause()
    } finally {
      this.#reading = undefined
    }
    this.#pump()
  }

  #pump(): void {
    const begun = new Set(this.#inFlight)
    for (const message of this.#queue) {
      if (!this.#isOn || this.#timer !== undefined || this.#inFlight.size >= MAX_KEYS_IN_FLIGHT) return
      if (begun.has(message.key)) continue
      begun.add(message.key)
      this.#inFlight.add(message.key)
      this.#send(message)
        .catch((error: unknown) => {
          this.#context.onError(error)
          this.#pause()
        })
        .finally(() => {
          this.#inFlight.delete(message.key)
          this.#pump()
        })
    }
  }

  async #send(message: StoredMessage): Promise<void> {
    const { store, afterWindow, maxAgeMs } = this.#context
    const { place, attemptedAtMs, createdAtMs } = message
    const now = this.#context.nowMs()
    if (attemptedAtMs === undefined) {
      if (now - createdAtMs > maxAgeMs) return this.#fail(message, 'E_TIMEOUT', `not sent within ${maxAgeMs} ms`)
      // Before it is sent: a page that is killed now must know after its reload that the server may have it.
      await this.#mark(message, now)
    } else {
      // A clock that was set back tells nothing.
      const passedMs = now < attemptedAtMs ? Infinity : now - attemptedAtMs
      const isForgotten = passedMs >= this.#context.dedupeWindowMs()
      if (isForgotten && afterWindow === 'report') {
        return this.#fail(message, 'E_TIMEOUT', 'it may have arrived, and the server would not know a second copy')
      }
    }
    if (!this.#isOn) return attemptedAtMs === undefined ? this.#mark(message, undefined) : undefined
    try {
      const result = await this.#context.publish(message)
      this.#refusedCount = 0
      await store.remove(place)
      this.#drop(message)
      this.#context.onSent(message, result)
    } catch (error) {
      if (!(error instanceof WebMQError)) throw error
      if (NOT_TAKEN.has(error.code) && attemptedAtMs === undefined) await this.#mark(message, undefined)
      if (UNTIL_CONNECTED.has(error.code)) this.stop()
      else if (error.retryable) this.#pause()
      else await this.#fail(message, error)
    }
  }

  async #fail(message: StoredMessage, error: WebMQError | ErrorCode, detail?: string): Promise<void> {
    await this.#context.store.remove(message.place)
    this.#drop(message)
    this.#context.onFailed(message, typeof error === 'string' ? new WebMQError(error, { detail }) : error)
  }

  async #mark(message: StoredMessage, attemptedAtMs: number | undefined): Promise<void> {
    const { place } = message
    await this.#context.store.mark(place, attemptedAtMs)
    this.#queue = this.#queue.map((one) => (one.place === place ? { ...one, attemptedAtMs } : one))
  }

  #drop(message: StoredMessage): void {
    this.#queue = this.#queue.filter(({ place }) => place !== message.place)
  }

  /** The server wants no more for now. */
  #pause(): void {
    if (!this.#isOn || this.#timer !== undefined) return
    const { backoff } = this.#context
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined
        this.wake()
      },
      backoff.minMs / 2 + backoffMs(this.#refusedCount++, backoff),
    )
  }
}
