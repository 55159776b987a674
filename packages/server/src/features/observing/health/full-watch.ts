import { LogPace } from '../../../kernel/base/log-pace.js'
import type { Logger } from '../../../kernel/base/logger.js'
import type { TransportStats } from '../../../kernel/ports/transport.js'
import type { Observer } from '../observer.js'

export interface FullWatchContext {
  /** Counters of the transport. Reading them may cost O(connections). */
  readonly stats: () => Pick<TransportStats, 'fullCount' | 'connectionLimit'>
  readonly logger: Pick<Logger, 'warn'>
  readonly observer: Pick<Observer, 'turnedAway'> | undefined
}

const READ_INTERVAL_MS = 5_000
const LOG_INTERVAL_MS = 60_000

/**
 * Tells operators that the transport refuses clients because it is full. It does so where nobody else sees it, and a
 * report of each would be work that strangers cause: so its counter is read now and then.
 */
export class FullWatch {
  readonly #context: FullWatchContext
  readonly #pace = new LogPace(LOG_INTERVAL_MS)
  #reportedCount = 0
  #timer: NodeJS.Timeout | undefined

  constructor(context: FullWatchContext) {
    this.#context = context
  }

  start(): void {
    this.#timer = setInterval(() => this.read(), READ_INTERVAL_MS).unref()
  }

  /** Tells of what was refused since the last reading. */
  read(): void {
    const { stats, logger, observer } = this.#context
    const { fullCount, connectionLimit } = stats()
    const count = fullCount - this.#reportedCount
    if (count <= 0) return
    this.#reportedCount = fullCount
    observer?.turnedAway?.(count)
    const others = this.#pace.take(count)
    if (others === undefined) return
    logger.warn(
      { code: 'E_CONNECTION_LIMIT', connectionLimit, count: count + others },
      'the node is full: it refuses connections; add nodes, or raise --max-connections and the descriptor limit (ulimit -n)',
    )
  }

  stop(): void {
    clearInterval(this.#timer)
    this.read()
  }
}
