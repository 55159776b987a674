import type { LogPlace } from '../../ports/shared-log.js'

/**
 * Where a log may lack what nodes with other rules have published: it is in no log, and has no offset. Outlives the
 * restarts of the log.
 */
export class LogDoubt {
  /** There are such nodes now. */
  isOpen = false
  upTo: LogPlace | undefined
  #timeMs = 0

  /** When there were such nodes last, Unix time in milliseconds. */
  get timeMs(): number {
    return this.isOpen ? Number.POSITIVE_INFINITY : this.#timeMs
  }

  /** Whoever stands at this place or before may have missed something. Returns whether that is new. */
  extend({ epoch, offset }: LogPlace, timeMs: number): boolean {
    if (this.upTo?.epoch === epoch && offset <= this.upTo.offset) return false
    this.upTo = { epoch, offset }
    this.#timeMs = timeMs
    return true
  }

  covers({ epoch, offset }: LogPlace): boolean {
    return this.isOpen || (epoch === this.upTo?.epoch && offset <= this.upTo.offset)
  }
}
