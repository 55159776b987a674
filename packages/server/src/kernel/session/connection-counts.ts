import { WebMQError } from 'webmq-client/protocol'

/** Counts connections per address or per user, against one limit. Keeps an entry only while it has connections. */
export class ConnectionCounts {
  readonly #counts = new Map<string, number>()
  /** The limit; a lower one ends nothing that is counted. */
  max: number
  readonly #limitName: string
  /** Refused calls of `enter`. */
  refusedCount = 0

  /** @param limitName Name of the option, for the error. */
  constructor(max: number, limitName: string) {
    this.max = max
    this.#limitName = limitName
  }

  /** Keys that have connections. */
  get size(): number {
    return this.#counts.size
  }

  /**
   * Counts one more connection. Call `leave` once for it.
   * @param max Default: the limit of all.
   * @throws {WebMQError} `E_CONNECTION_LIMIT`; nothing was counted.
   */
  enter(key: string, max = this.max): void {
    const count = this.#counts.get(key) ?? 0
    if (count >= max) {
      this.refusedCount++
      throw new WebMQError('E_CONNECTION_LIMIT', { detail: `${this.#limitName} is ${max}` })
    }
    this.#counts.set(key, count + 1)
  }

  leave(key: string): void {
    const count = this.#counts.get(key) ?? 0
    if (count > 1) this.#counts.set(key, count - 1)
    else this.#counts.delete(key)
  }
}
