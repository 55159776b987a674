/** Bounds of a log beside the number of its messages. */
export interface LogFloorOptions {
  /** Bytes of envelopes that are kept. */
  readonly maxBytes: number
  /** `undefined` when some messages are kept whatever their age. */
  readonly maxAgeMs: number | undefined
}

/** A bound is kept to this part of itself. */
const STEPS = 64
const MIN_STEP_MS = 100

/** How far a log had come. */
interface Mark {
  readonly offset: number
  readonly timeMs: number
  /** Of all messages up to here. */
  readonly byteCount: number
}

/**
 * Knows how much of a log may go, by what it has seen of it: so that Redis, which counts messages alone, need not be asked. Cost: a few
 * numbers per message, and at most some 130 marks.
 */
export class LogFloor {
  readonly #maxBytes: number
  readonly #maxAgeMs: number
  readonly #stepMs: number
  #marks: Mark[] = []
  #byteCount = 0
  #offset = 0

  constructor({ maxBytes, maxAgeMs = Number.POSITIVE_INFINITY }: LogFloorOptions) {
    this.#maxBytes = maxBytes
    this.#maxAgeMs = maxAgeMs
    this.#stepMs = Math.max(MIN_STEP_MS, maxAgeMs / STEPS)
  }

  /** The offset up to which messages may go; 0 for none. */
  get offset(): number {
    return this.#offset
  }

  /** Another log is seen from its beginning. */
  restart(): void {
    this.#marks = []
    this.#byteCount = 0
    this.#offset = 0
  }

  /** The next message of the log. */
  note(offset: number, byteCount: number, timeMs: number): void {
    this.#byteCount += byteCount
    const newest = this.#marks.at(-1)
    const isStep =
      newest === undefined ||
      this.#byteCount - newest.byteCount >= this.#maxBytes / STEPS ||
      timeMs - newest.timeMs >= this.#stepMs
    if (!isStep) return
    this.#marks.push({ offset, timeMs, byteCount: this.#byteCount })
    let goneCount = 0
    for (const mark of this.#marks) {
      const isOver = this.#byteCount - mark.byteCount > this.#maxBytes || timeMs - mark.timeMs > this.#maxAgeMs
      if (!isOver) break
      this.#offset = mark.offset
      goneCount++
    }
    if (goneCount > 0) this.#marks = this.#marks.slice(goneCount)
  }
}
