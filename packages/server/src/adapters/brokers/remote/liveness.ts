export interface LivenessOptions {
  /** The other end counts as gone after two intervals without a sign of life. */
  readonly intervalMs: number
  /** Asks the other end for an answer. Called after a quarter of an interval of silence, then once per interval. */
  readonly probe: () => void
  /** No sign of life for two intervals. Called once; the watch has stopped. */
  readonly silent: (detail: string) => void
}

const LOOKS_PER_INTERVAL = 4
/** A sign of life falls between two looks: seven silent looks mean 1.75 to 2 intervals of silence. */
const MAX_SILENT_LOOKS = 7
/** The least silence, in intervals, after which the other end counts as gone. */
export const MIN_SILENT_INTERVALS = MAX_SILENT_LOOKS / LOOKS_PER_INTERVAL

/**
 * Detects a peer that is connected but does not answer. TCP reports such a peer only after minutes.
 *
 * It counts looks, not time: after a long pause of this process, one late look counts once, and then the process reads
 * what has arrived.
 */
export class Liveness {
  readonly #options: LivenessOptions
  readonly #timer: NodeJS.Timeout
  #isAlive = false
  #isPaused = false
  #silentLooks = 0

  constructor(options: LivenessOptions) {
    this.#options = options
    this.#timer = setInterval(() => this.#look(), options.intervalMs / LOOKS_PER_INTERVAL)
  }

  /** A sign of life. Costs one assignment: callers report every message. */
  alive(): void {
    this.#isAlive = true
  }

  /** While paused, silence is not counted. */
  set isPaused(isPaused: boolean) {
    this.#isPaused = isPaused
    this.alive()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #look(): void {
    if (this.#isAlive || this.#isPaused) {
      this.#isAlive = false
      this.#silentLooks = 0
      return
    }
    this.#silentLooks++
    if (this.#silentLooks >= MAX_SILENT_LOOKS) {
      this.stop()
      this.#options.silent(`no answer for ${Math.round(2 * this.#options.intervalMs)} ms`)
    } else if (this.#silentLooks % LOOKS_PER_INTERVAL === 1) {
      this.#options.probe()
    }
  }
}
