import { backoffMs } from '../../core/connection/backoff.js'
import { MAX_TIMER_MS } from '../../core/options.js'
import { WebMQError } from '../../protocol/errors.js'

/** A snapshot that was refused is tried again at least so often. */
const MAX_RETRY_MS = 300_000

/** Options and collaborators of {@link SnapshotSchedule}. */
export interface SnapshotScheduleContext {
  readonly afterMs: number
  readonly afterUpdates: number
  readonly random: () => number
  /** One of several clients that may do the same at once waits up to so long. */
  spreadMs(): number
  /** Whether the document has everything that the log has, and the log everything that the document has. */
  isSettled(): boolean
  write(): Promise<void>
  report(error: unknown): void
}

/** Decides when a snapshot is written. Every client may write it; the first one spares the others from doing so. */
export class SnapshotSchedule {
  readonly #context: SnapshotScheduleContext
  #count = 0
  #failures = 0
  #isUrgent = false
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(context: SnapshotScheduleContext) {
    this.#context = context
  }

  /** The document has changed. */
  changed(): void {
    const { afterMs, afterUpdates } = this.#context
    this.#count++
    const isUrgent = this.#count >= afterUpdates && this.#failures === 0
    if (this.#timer !== undefined && isUrgent === this.#isUrgent) return
    this.#isUrgent = isUrgent
    this.#wake(isUrgent ? 0 : afterMs)
  }

  /** Another client has written a snapshot. */
  written(): void {
    this.stop()
    this.#count = this.#failures = 0
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#isUrgent = false
  }

  #wake(inMs: number): void {
    const { random, spreadMs } = this.#context
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#fire(), Math.min(inMs + random() * spreadMs(), MAX_TIMER_MS))
  }

  async #fire(): Promise<void> {
    const { afterMs, isSettled, random, report, write } = this.#context
    if (!isSettled()) {
      this.#wake(Math.min(afterMs, 1_000))
      return
    }
    try {
      await write()
      this.written()
    } catch (error) {
      if (!(error instanceof WebMQError && error.retryable)) report(error)
      this.#isUrgent = false
      this.#wake(afterMs + backoffMs(this.#failures++, { minMs: afterMs, maxMs: MAX_RETRY_MS, random }))
    }
  }
}
