import type { Logger } from '../logger.js'

/** Clients choose the text of an origin, so the number and length of logged origins are limited. */
const MAX_ORIGINS = 100
const MAX_ORIGIN_CHARS = 200

/**
 * Logs each refused origin once. Browsers do not tell developers why a connection failed, and almost everyone starts
 * with a page on another port.
 */
export class RefusedOrigins {
  readonly #logger: Pick<Logger, 'warn'>
  readonly #known = new Set<string>()

  constructor(logger: Pick<Logger, 'warn'>) {
    this.#logger = logger
  }

  /** Cost: O(1), and at most 100 log lines per server. */
  report(originHeader: string | undefined): void {
    const origin = (originHeader ?? '').slice(0, MAX_ORIGIN_CHARS)
    if (this.#known.has(origin) || this.#known.size >= MAX_ORIGINS) return
    this.#known.add(origin)
    this.#logger.warn({ origin }, 'a page of this origin may not connect; to allow it, add it to origins (--origin)')
  }
}
