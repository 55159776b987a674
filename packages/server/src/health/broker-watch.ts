import type { Logger } from '../logger.js'
import type { Broker, BrokerStatus } from '../ports/broker.js'

/** How a broker is. */
export interface BrokerReport {
  readonly name: string
  readonly status: BrokerStatus
  /** Why it is not `up`, when it said so; without secrets. */
  readonly reason?: string
  /** Time for which it has been so. */
  readonly sinceMs: number
}

/** A broker has become another: what handlers of the event `broker` get. */
export interface BrokerChange {
  readonly status: BrokerStatus
  readonly previous: BrokerStatus
  /** Why it is not `up`, in words that hold no secret. */
  readonly reason?: string
  /** What the broker's library said, as it said it. */
  readonly cause?: Error
}

/** What a {@link BrokerWatch} works with. */
export interface BrokerWatchContext {
  readonly broker: Pick<Broker, 'name' | 'stats'>
  /** Where it is, without passwords; absent when that says nothing. */
  readonly address?: string
  /** Takes secrets out of what libraries say. */
  readonly hideSecrets: (text: string) => string
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly onChange: (change: BrokerChange) => void
  /** A clock that never goes back, in milliseconds. */
  readonly now?: () => number
}

/** After a line about a loss there is no other for this time: a broker that comes and goes does not fill the log. */
const LOG_PAUSE_MS = 10_000

/** Knows how the broker of this node is and since when, and tells those who run the node: once per change, not once per message. */
export class BrokerWatch {
  readonly #context: BrokerWatchContext
  readonly #now: () => number
  #status: BrokerStatus = 'down'
  #reason: string | undefined
  #sinceMs: number
  /** When it was last `up`; `undefined` while it is, and before it first was. */
  #awaySinceMs: number | undefined
  #awayMs = 0
  #lastAwayMs = 0
  #wasUp = false
  #isStopped = false
  /** Whether the log knows of the loss that lasts. */
  #isLossLogged = false
  #untoldLossCount = 0
  #quietUntilMs = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | undefined

  constructor(context: BrokerWatchContext) {
    this.#context = context
    this.#now = context.now ?? (() => performance.now())
    this.#sinceMs = this.#now()
  }

  get status(): BrokerStatus {
    return this.#status
  }

  /** Time since the start in which it was not `up`. */
  get awayMs(): number {
    return this.#awayMs + (this.#awaySinceMs === undefined ? 0 : this.#now() - this.#awaySinceMs)
  }

  /** How long it was away the last time, until it was `up` again; 0 when it never was. */
  get lastAwayMs(): number {
    return this.#lastAwayMs
  }

  report(): BrokerReport {
    const { name } = this.#context.broker
    const sinceMs = Math.round(this.#now() - this.#sinceMs)
    return { name, status: this.#status, ...(this.#reason === undefined ? {} : { reason: this.#reason }), sinceMs }
  }

  /** The broker has said how it is. */
  change(status: BrokerStatus, cause?: Error): void {
    const previous = this.#status
    if (this.#isStopped) return
    this.#reason = status === 'up' || cause === undefined ? undefined : this.#context.hideSecrets(cause.message)
    if (status === previous) {
      this.#tellOfFirstAttempt()
      return
    }
    this.#status = status
    this.#sinceMs = this.#now()
    if (status === 'up') this.#becomeUp()
    else this.#becomeAway()
    this.#context.onChange({
      status,
      previous,
      ...(this.#reason === undefined ? {} : { reason: this.#reason }),
      ...(cause === undefined ? {} : { cause }),
    })
  }

  /** The node stops: what its broker says from now on is no news. */
  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  /** Whoever starts a node and its broker together wants to know what the node waits for. */
  #tellOfFirstAttempt(): void {
    if (this.#wasUp || this.#isLossLogged || this.#reason === undefined) return
    this.#isLossLogged = true
    this.#context.log.warn(this.#fields(), 'the broker is not reached yet')
  }

  #becomeUp(): void {
    const { log, broker } = this.#context
    const nowMs = this.#now()
    if (!this.#wasUp) log.info(this.#fields(), 'the broker is up')
    this.#wasUp = true
    if (this.#awaySinceMs === undefined) {
      this.#isLossLogged = false
      return
    }
    const awayMs = nowMs - this.#awaySinceMs
    this.#awayMs += awayMs
    this.#lastAwayMs = awayMs
    this.#awaySinceMs = undefined
    if (!this.#isLossLogged) return
    this.#isLossLogged = false
    const { pendingCount } = broker.stats()
    log.info({ ...this.#fields(), awayMs: Math.round(awayMs), waitingPublishes: pendingCount }, 'the broker is back')
  }

  #becomeAway(): void {
    if (!this.#wasUp) return
    const nowMs = this.#now()
    this.#awaySinceMs ??= nowMs
    if (nowMs >= this.#quietUntilMs) this.#logLoss(nowMs)
    else {
      this.#untoldLossCount++
      this.#timer ??= setTimeout(() => this.#logUntold(), this.#quietUntilMs - nowMs).unref()
    }
  }

  #logLoss(nowMs: number): void {
    const what = this.#status === 'down' ? 'the broker is lost' : 'the broker takes no messages for now'
    this.#context.log.warn(this.#fields(), `${what}; publishes wait`)
    this.#isLossLogged = true
    this.#quietUntilMs = nowMs + LOG_PAUSE_MS
  }

  #logUntold(): void {
    this.#timer = undefined
    const fields = { ...this.#fields(), status: this.#status, moreLosses: this.#untoldLossCount }
    this.#context.log.warn(fields, 'the broker comes and goes')
    this.#untoldLossCount = 0
    this.#isLossLogged = this.#status !== 'up'
    this.#quietUntilMs = this.#now() + LOG_PAUSE_MS
  }

  #fields(): object {
    const { broker, address } = this.#context
    return {
      broker: broker.name,
      ...(address === undefined ? {} : { address }),
      ...(this.#reason === undefined ? {} : { reason: this.#reason }),
    }
  }
}
