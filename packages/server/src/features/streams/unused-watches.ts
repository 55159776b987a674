import type { Deadline, Deadlines } from '../../kernel/base/deadlines.js'
import { endMsOf } from './shared-config.js'
import type { StreamWatch } from './watch.js'

/** Ended streams that somebody has asked for, kept for the next one, who would fold them again; their texts count among the others. */
const MAX_ENDED = 64
/** They are kept for so long after their last use. */
const ENDED_MS = 5_000
/** An active stream without a lease is kept for so long after its last use, and no longer than it lives: the log has it. */
const IDLE_MS = 60_000

/** Watches that nobody uses, in the order of their last use. Each is closed after some time; messages of its key are no use of it. */
export class UnusedWatches {
  readonly #deadlines: Pick<Deadlines, 'now' | 'set' | 'clear'>
  readonly #close: (watch: StreamWatch) => void
  /** Of active streams. */
  readonly #idle = new Map<StreamWatch, Deadline>()
  readonly #ended = new Map<StreamWatch, Deadline>()

  constructor(deadlines: Pick<Deadlines, 'now' | 'set' | 'clear'>, close: (watch: StreamWatch) => void) {
    this.#deadlines = deadlines
    this.#close = close
  }

  /** That which is given up first. */
  get first(): StreamWatch | undefined {
    const [first] = this.#ended.size > 0 ? this.#ended.keys() : this.#idle.keys()
    return first
  }

  /** Nobody uses it. */
  add(watch: StreamWatch): void {
    const { isActive } = watch.fold
    const kept = isActive ? this.#idle : this.#ended
    if (kept.has(watch)) return
    this.delete(watch)
    const keptMs = isActive ? Math.min(IDLE_MS, endMsOf(watch.fold) - Date.now()) : ENDED_MS
    const deadline = this.#deadlines.set(this.#deadlines.now() + keptMs, () => this.#close(watch))
    kept.set(watch, deadline)
    const [oldest] = this.#ended.keys()
    if (this.#ended.size > MAX_ENDED && oldest !== undefined) this.#close(oldest)
  }

  /** Somebody uses it, or it is closed. */
  delete(watch: StreamWatch): void {
    const deadline = this.#idle.get(watch) ?? this.#ended.get(watch)
    if (deadline === undefined) return
    this.#deadlines.clear(deadline)
    this.#idle.delete(watch)
    this.#ended.delete(watch)
  }
}
