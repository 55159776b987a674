/** `open`: nobody is asked. `half-open`: one question tries whether it works again. */
export type BreakerState = 'closed' | 'open' | 'half-open'

/** So many failures in a row open it. */
const MAX_FAILURES = 5
/** It stays open for this time, twice as long after each failed try. */
const MIN_OPEN_MS = 1_000
const MAX_OPEN_MS = 30_000

/** Spares a service that fails: while it is open, nobody waits for an answer that will not come. */
export class CircuitBreaker {
  readonly #onChange: (state: BreakerState, failure: unknown) => void
  #state: BreakerState = 'closed'
  #failureCount = 0
  #openMs = MIN_OPEN_MS
  #openUntilMs = 0

  constructor(onChange: (state: BreakerState, failure: unknown) => void) {
    this.#onChange = onChange
  }

  get state(): BreakerState {
    return this.#state
  }

  /** Whether a question may be asked now. After a `true`, report the outcome. */
  mayAsk(): boolean {
    if (this.#state === 'closed') return true
    if (this.#state === 'half-open' || performance.now() < this.#openUntilMs) return false
    this.#become('half-open', undefined)
    return true
  }

  succeeded(): void {
    this.#failureCount = 0
    if (this.#state === 'closed') return
    this.#openMs = MIN_OPEN_MS
    this.#become('closed', undefined)
  }

  failed(failure: unknown): void {
    this.#failureCount++
    // Answers to questions that were asked before it opened.
    if (this.#state === 'open') return
    if (this.#state === 'half-open') this.#openMs = Math.min(MAX_OPEN_MS, 2 * this.#openMs)
    else if (this.#failureCount < MAX_FAILURES) return
    this.#openUntilMs = performance.now() + this.#openMs
    this.#become('open', failure)
  }

  #become(state: BreakerState, failure: unknown): void {
    this.#state = state
    this.#onChange(state, failure)
  }
}
