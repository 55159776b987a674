import type { Logger } from '../../base/logger.js'

/** Clients choose the text of an origin, so the number and length of logged origins are limited, per time. */
const MAX_ORIGINS = 100
const FORGET_AFTER_MS = 3_600_000
const MAX_ORIGIN_CHARS = 200

/**
 * Logs each refused origin once an hour. Browsers do not tell developers why a connection failed, and almost everyone starts
 * with a page on another port.
 */
export class RefusedOrigins {
  readonly #logger: Pick<Logger, 'warn'>
  readonly #now: () => number
  readonly #known = new Set<string>()
  #knownSinceMs = 0

  constructor(logger: Pick<Logger, 'warn'>, now: () => number) {
    this.#logger = logger
    this.#now = now
  }

  /** Cost: O(1), and at most 100 log lines per hour. */
  report(originHeader: string | undefined): void {
    if (this.#now() - this.#knownSinceMs >= FORGET_AFTER_MS) {
      this.#known.clear()
      this.#knownSinceMs = this.#now()
    }
    // A copy, because a part of a text keeps all of it in memory: here, the request head.
    const origin = Buffer.from((originHeader ?? '').slice(0, MAX_ORIGIN_CHARS)).toString()
    if (this.#known.has(origin) || this.#known.size >= MAX_ORIGINS) return
    this.#known.add(origin)
    this.#logger.warn({ origin }, 'a page of this origin may not connect; to allow it, add it to origins (--origin)')
  }
}
