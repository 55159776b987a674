import type { ErrorCode } from 'webmq-client/protocol'
import type { Logger } from '../logger.js'

/** A connection is named once in this time. */
const INTERVAL_MS = 60_000
/** Lines in this time, for all connections. Metrics count the rest. */
const MAX_LINES = 1_000

/** The refusals that mean that a limit was reached. */
const LIMIT_CODES: ReadonlySet<ErrorCode> = new Set([
  'E_RATE_LIMIT',
  'E_LISTEN_LIMIT',
  'E_CONNECTION_LIMIT',
  'E_PRESENCE_LIMIT',
])

/** Who reached a limit. */
export interface LimitedClient {
  readonly id: string
  readonly userId: string | undefined
  readonly address: string
}

/** Logs that a connection has reached a limit: once a minute per connection, and at most 1,000 times a minute. */
export class LimitReports {
  readonly #logger: Pick<Logger, 'info'>
  readonly #now: () => number
  readonly #reported = new Set<string>()
  #sinceMs = Number.NEGATIVE_INFINITY

  constructor(logger: Pick<Logger, 'info'>, now: () => number) {
    this.#logger = logger
    this.#now = now
  }

  /** A message of a connection was refused. Any code may be told; only those of limits are logged. */
  refused(client: LimitedClient, code: ErrorCode, message: string): void {
    if (!LIMIT_CODES.has(code)) return
    const nowMs = this.#now()
    if (nowMs - this.#sinceMs >= INTERVAL_MS) {
      this.#reported.clear()
      this.#sinceMs = nowMs
    }
    const { id, userId, address } = client
    if (this.#reported.size >= MAX_LINES || this.#reported.has(id)) return
    this.#reported.add(id)
    this.#logger.info({ code, session: id, user: userId, address, limit: message }, 'a client has reached a limit')
  }
}
