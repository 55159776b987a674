/** What a {@link Liveness} watches. */
export interface LivenessOptions {
  /** After two of these without a sign of life the other end counts as gone. */
  readonly intervalMs: number
  /** Asks the other end for an answer. Called after a quarter of an interval of silence, then once per interval. */
  readonly probe: () => void
  /** No sign of life for two intervals. Called once; the watch has stopped. */
  readonly silent: (detail: string) => void
}

const LOOKS_PER_INTERVAL = 4
/** Signs of life fall between two looks: seven silent looks are between 1.75 and 2 intervals of silence. */
const MAX_SILENT_LOOKS = 7

/**
 * Finds an end that is connected but does not answer, which TCP reports after minutes.
 *
 * It counts looks, not time. A process that was busy or asleep for long finds that out in one late look, which counts
 * once, and then reads what has arrived meanwhile.
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
