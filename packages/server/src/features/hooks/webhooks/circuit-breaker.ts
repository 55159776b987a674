/** `open`: nobody is asked. `half-open`: one question tries whether it works again. */
export type BreakerState = 'closed' | 'open' | 'half-open'

/** Failures in a row that open it. */
const MAX_FAILURES = 5
/** Clients that they come from, unless nothing could be reached: one client must not close a service for others. */
const MIN_CLIENTS = 3
/** It stays open for this time, twice as long after each failed try. */
const MIN_OPEN_MS = 1_000
const MAX_OPEN_MS = 30_000

/** Spares a service that fails: while it is open, nobody waits for an answer that will not come. */
export class CircuitBreaker {
  readonly #onChange: (state: BreakerState, failure: unknown) => void
  state: BreakerState = 'closed'
  #failureCount = 0
  #openMs = MIN_OPEN_MS
  #openUntilMs = 0
  readonly #clients = new Set<string>()
  lastFailure: unknown

  constructor(onChange: (state: BreakerState, failure: unknown) => void) {
    this.#onChange = onChange
  }

  /** Whether a question may be asked now. After a `true`, report the outcome. */
  mayAsk(): boolean {
    if (this.state === 'closed') return true
    if (this.state === 'half-open' || performance.now() < this.#openUntilMs) return false
    this.#become('half-open', undefined)
    return true
  }

  succeeded(): void {
    this.#failureCount = 0
    this.#clients.clear()
    if (this.state === 'closed') return
    this.#openMs = MIN_OPEN_MS
    this.#become('closed', undefined)
  }

  /** @param client Whose question may have caused it; `undefined`: nobody's, the service cannot be reached. */
  failed(failure: unknown, client: string | undefined): void {
    this.#failureCount++
    if (client !== undefined && this.#clients.size < MIN_CLIENTS) this.#clients.add(client)
    // Answers to questions that were asked before it opened.
    if (this.state === 'open') return
    if (this.state === 'half-open') this.#openMs = Math.min(MAX_OPEN_MS, 2 * this.#openMs)
    else if (this.#failureCount < MAX_FAILURES || (client !== undefined && this.#clients.size < MIN_CLIENTS)) return
    this.lastFailure = failure
    this.#openUntilMs = performance.now() + this.#openMs
    this.#become('open', failure)
  }

  #become(state: BreakerState, failure: unknown): void {
    this.state = state
    this.#onChange(state, failure)
  }
}
