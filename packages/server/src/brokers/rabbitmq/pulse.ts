/** What a {@link Pulse} watches. */
export interface PulseOptions {
  /** After two of these without a sign of life the other end counts as gone. */
  readonly intervalMs: number
  /** Asks the other end for an answer, which is then to be told to `heard`. */
  readonly ask: () => void
  /** Nothing was heard for too long. Called once; the pulse has stopped. */
  readonly silent: (detail: string) => void
}

/** Looks as often as this per interval, so that two silent ones are found soon after they are over. */
const LOOKS_PER_INTERVAL = 4
/** A look that comes so many looks late: it was this process that stood still, and what was heard is not read yet. */
const MAX_LATE_LOOKS = 2

/**
 * Finds an end that is connected and does not answer, which TCP tells after minutes and the heartbeats of AMQP after
 * ten seconds. A question goes out after a quarter of an interval of silence.
 */
export class Pulse {
  readonly #options: PulseOptions
  readonly #lookMs: number
  readonly #timer: NodeJS.Timeout
  /** Since the last look: a sign of life costs no more than this, for there is one per message. */
  #hasHeard = false
  #heardMs = performance.now()
  #lookedMs = performance.now()
  #isAsked = false
  #isPaused = false

  constructor(options: PulseOptions) {
    this.#options = options
    this.#lookMs = options.intervalMs / LOOKS_PER_INTERVAL
    this.#timer = setInterval(() => this.#look(), this.#lookMs)
  }

  /** A sign of life. */
  heard(): void {
    this.#hasHeard = true
  }

  /** While paused, silence is not counted. */
  set isPaused(isPaused: boolean) {
    this.#isPaused = isPaused
    this.heard()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #look(): void {
    const nowMs = performance.now()
    const isLate = nowMs - this.#lookedMs > this.#lookMs * MAX_LATE_LOOKS
    this.#lookedMs = nowMs
    if (this.#hasHeard || this.#isPaused) {
      this.#hasHeard = false
      this.#isAsked = false
      this.#heardMs = nowMs
      return
    }
    if (isLate) this.#heardMs = Math.max(this.#heardMs, nowMs - this.#lookMs)
    const silentMs = nowMs - this.#heardMs
    // Timers may come a little early.
    if (silentMs >= this.#options.intervalMs * 2 - this.#lookMs / 2) {
      this.stop()
      this.#options.silent(`no answer for ${Math.round(silentMs)} ms`)
    } else if (!this.#isAsked) {
      this.#isAsked = true
      this.#options.ask()
    }
  }
}
