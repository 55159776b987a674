import { WebMQError } from 'webmq-client/protocol'
import { defined } from '../../../kernel/base/defined.js'
import type { Logger } from '../../../kernel/base/logger.js'
import { type Broker, type BrokerStatus, LogRestart } from '../../../kernel/ports/broker.js'

export interface BrokerReport {
  readonly name: string
  readonly status: BrokerStatus
  /** Why it is not `up`, if known; without secrets. */
  readonly reason?: string
  readonly sinceMs: number
}

/** The status of a broker has changed: what handlers of the event `broker` get. */
export interface BrokerChange {
  readonly status: BrokerStatus
  readonly previous: BrokerStatus
  /** Why it is not `up`; without secrets. */
  readonly reason?: string
  /** The error of the broker's library, unchanged. */
  readonly cause?: Error
}

export interface BrokerWatchContext {
  readonly broker: Pick<Broker, 'name' | 'stats'>
  /** Without passwords; absent for the embedded broker. */
  readonly address?: string
  /** Removes secrets from the errors of libraries. */
  readonly hideSecrets: (text: string) => string
  readonly logger: Pick<Logger, 'info' | 'warn' | 'error'>
  readonly onChange: (change: BrokerChange) => void
  /** A clock that never goes back, in milliseconds. */
  readonly now?: () => number
}

/** At most one line about losses per this time: a broker that comes and goes must not fill the log. */
const LOG_PAUSE_MS = 10_000

/** Tracks the status of the broker and reports each change to operators: in the log, as an event, in `/health`. */
export class BrokerWatch {
  readonly #context: BrokerWatchContext
  readonly #now: () => number
  status: BrokerStatus = 'down'
  #reason: string | undefined
  #sinceMs: number
  /** When it was last `up`; `undefined` while it is, and before it first was. */
  #awaySinceMs: number | undefined
  #awayMs = 0
  /** Duration of the last outage that is over; 0 without one. */
  lastAwayMs = 0
  #wasUp = false
  #isStopped = false
  /** Whether the current loss was logged. */
  #isLossLogged = false
  /** The broker is there in the current loss: its log is opened again. */
  #isLogRestart = false
  /** Whether it was logged that the broker refuses this node, in the current loss. */
  #isRefusalLogged = false
  #unloggedLossCount = 0
  #unloggedRestartCount = 0
  #quietUntilMs = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | undefined

  constructor(context: BrokerWatchContext) {
    this.#context = context
    this.#now = context.now ?? (() => performance.now())
    this.#sinceMs = this.#now()
  }

  /** Time since the start in which it was not `up`. */
  get awayMs(): number {
    return this.#awayMs + (this.#awaySinceMs === undefined ? 0 : this.#now() - this.#awaySinceMs)
  }

  report(): BrokerReport {
    const { name } = this.#context.broker
    const sinceMs = Math.round(this.#now() - this.#sinceMs)
    return { name, status: this.status, ...defined({ reason: this.#reason }), sinceMs }
  }

  change(status: BrokerStatus, cause?: Error): void {
    const previous = this.status
    if (this.#isStopped) return
    this.#reason = status === 'up' || cause === undefined ? undefined : this.#context.hideSecrets(cause.message)
    this.#tellOfRefusal(cause)
    const wasLogRestart = this.#isLogRestart
    if (status !== 'up') this.#isLogRestart = cause instanceof LogRestart
    if (status === previous) {
      this.#tellOfFirstAttempt()
      if (wasLogRestart && !this.#isLogRestart) this.#becomeAway()
      return
    }
    this.status = status
    this.#sinceMs = this.#now()
    if (status === 'up') this.#becomeUp()
    else this.#becomeAway()
    this.#context.onChange({ status, previous, ...defined({ reason: this.#reason, cause }) })
  }

  /** The node stops: later reports are ignored. */
  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  /** Logs once what the node waits for when it is started together with its broker. */
  #tellOfFirstAttempt(): void {
    if (this.#wasUp || this.#isLossLogged || this.#reason === undefined) return
    this.#isLossLogged = true
    this.#context.logger.warn(this.#fields(), 'the broker is not reached yet')
  }

  /** The broker took this node before, so most often its password was changed. */
  #tellOfRefusal(cause: Error | undefined): void {
    if (!(cause instanceof WebMQError) || cause.code !== 'E_BROKER_REFUSED') return
    if (!this.#wasUp || this.#isRefusalLogged) return
    this.#isRefusalLogged = true
    this.#context.logger.error(
      this.#fields(),
      'the broker refuses this node, which it took before; if its password was changed, change it in the address too',
    )
  }

  #becomeUp(): void {
    const { logger, broker } = this.#context
    const nowMs = this.#now()
    if (!this.#wasUp) logger.info(this.#fields(), 'the broker is up')
    this.#wasUp = true
    this.#isRefusalLogged = false
    if (this.#awaySinceMs === undefined) {
      this.#isLossLogged = false
      return
    }
    const awayMs = nowMs - this.#awaySinceMs
    this.#awayMs += awayMs
    this.lastAwayMs = awayMs
    this.#awaySinceMs = undefined
    if (!this.#isLossLogged) return
    this.#isLossLogged = false
    const { pendingCount } = broker.stats()
    logger.info(
      { ...this.#fields(), awayMs: Math.round(awayMs), waitingPublishes: pendingCount },
      this.#isLogRestart ? 'the log of the broker goes on' : 'the broker is back',
    )
  }

  #becomeAway(): void {
    if (!this.#wasUp) return
    const nowMs = this.#now()
    this.#awaySinceMs ??= nowMs
    if (nowMs >= this.#quietUntilMs) this.#logLoss(nowMs)
    else {
      this.#unloggedLossCount++
      if (this.#isLogRestart) this.#unloggedRestartCount++
      this.#timer ??= setTimeout(() => this.#logMoreLosses(), this.#quietUntilMs - nowMs).unref()
    }
  }

  #logLoss(nowMs: number): void {
    const lost = this.#isLogRestart ? 'the log of the broker is opened again' : 'the broker is lost'
    const what = this.status === 'down' ? lost : 'the broker takes no messages for now'
    this.#context.logger.warn(this.#fields(), `${what}; publishes wait`)
    this.#isLossLogged = true
    this.#quietUntilMs = nowMs + LOG_PAUSE_MS
  }

  #logMoreLosses(): void {
    this.#timer = undefined
    const fields = { ...this.#fields(), status: this.status, moreLosses: this.#unloggedLossCount }
    const isLogAlone = this.#unloggedRestartCount === this.#unloggedLossCount
    this.#context.logger.warn(
      fields,
      isLogAlone ? 'the log of the broker was opened again' : 'the broker comes and goes',
    )
    this.#unloggedLossCount = 0
    this.#unloggedRestartCount = 0
    this.#isLossLogged = this.status !== 'up'
    this.#quietUntilMs = this.#now() + LOG_PAUSE_MS
  }

  #fields(): object {
    const { broker, address } = this.#context
    return { broker: broker.name, address, reason: this.#reason }
  }
}
