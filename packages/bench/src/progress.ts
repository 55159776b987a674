/** Reports the progress of a run; never the result. */
export interface Progress {
  /** Enters a part of the run, such as `connecting`. */
  phase(name: string): void
  /** @param ratio 0 to 1. @param detail Text beside it. */
  update(ratio: number, detail: string): void
  /** Something the user should know at once, on a line of its own. */
  note(text: string): void
  /** Leaves the terminal as it was. Idempotent. */
  done(): void
}

/** The part of a terminal or file that progress needs. */
export interface ProgressOutput {
  readonly isTTY?: boolean
  /** Width of the terminal; changes when it is resized. */
  readonly columns?: number
  write(text: string): unknown
}

/** One plain line at most this often, so that a log of a long run stays readable. */
const PLAIN_INTERVAL_MS = 2_000
const BAR_CHARS = 30

/**
 * A bar that redraws itself on a terminal, plain lines elsewhere, nothing when disabled (notes are always written).
 * @param now Milliseconds; for tests.
 */
export function createProgress(output: ProgressOutput, isEnabled: boolean, now: () => number = Date.now): Progress {
  if (!isEnabled) return { phase: ignore, update: ignore, note: (text) => output.write(`${text}\n`), done: ignore }
  return output.isTTY === true ? new BarProgress(output) : new PlainProgress(output, now)
}

const ignore = () => undefined

class BarProgress implements Progress {
  readonly #output: ProgressOutput
  #phase = ''
  #isDrawn = false

  constructor(output: ProgressOutput) {
    this.#output = output
  }

  phase(name: string): void {
    this.#phase = name
    this.update(0, '')
  }

  update(ratio: number, detail: string): void {
    const filled = Math.round(Math.min(1, Math.max(0, ratio)) * BAR_CHARS)
    const bar = '█'.repeat(filled) + '░'.repeat(BAR_CHARS - filled)
    // A line that wraps could not be redrawn.
    const line = `${this.#phase.padEnd(12)} ${bar} ${detail}`.slice(0, (this.#output.columns ?? 80) - 1)
    // \x1b[K clears the rest of a longer previous line.
    this.#output.write(`\r${line}\x1b[K`)
    this.#isDrawn = true
  }

  note(text: string): void {
    this.done()
    this.#output.write(`${text}\n`)
  }

  done(): void {
    if (this.#isDrawn) this.#output.write('\r\x1b[K')
    this.#isDrawn = false
  }
}

class PlainProgress implements Progress {
  readonly #output: ProgressOutput
  readonly #now: () => number
  #phase = ''
  #lastLineMs = Number.NEGATIVE_INFINITY

  constructor(output: ProgressOutput, now: () => number) {
    this.#output = output
    this.#now = now
  }

  phase(name: string): void {
    this.#phase = name
    this.#output.write(`${name}\n`)
    this.#lastLineMs = this.#now()
  }

  update(_ratio: number, detail: string): void {
    if (this.#now() - this.#lastLineMs < PLAIN_INTERVAL_MS) return
    this.#output.write(`${this.#phase}: ${detail}\n`)
    this.#lastLineMs = this.#now()
  }

  note(text: string): void {
    this.#output.write(`${text}\n`)
  }

  done(): void {
    // Every line is complete as it is written.
  }
}
