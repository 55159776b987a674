import type { Logger } from '../logger.js'

/** Origins are what strangers say they are: more than this are not kept, nor logged. */
const MAX_ORIGINS = 100
const MAX_ORIGIN_CHARS = 200

/**
 * Tells the operator whose pages are refused, once for each origin: the browser gives its developer no reason, and the
 * page of a development server, on another port, is the first that everyone meets.
 */
export class RefusedOrigins {
  readonly #log: Pick<Logger, 'warn'>
  readonly #known = new Set<string>()

  constructor(log: Pick<Logger, 'warn'>) {
    this.#log = log
  }

  /** Cost: O(1), and at most 100 log lines in the life of a server. */
  report(originHeader: string | undefined): void {
    const origin = (originHeader ?? '').slice(0, MAX_ORIGIN_CHARS)
    if (this.#known.has(origin) || this.#known.size >= MAX_ORIGINS) return
    this.#known.add(origin)
    this.#log.warn({ origin }, 'a page of this origin may not connect; if it should, add it to origins (--origin)')
  }
}
