/** Lines of one session or address per second: a client that is refused again and again must not fill the disk. */
const LINES_PER_SECOND = 10
/** Sessions and addresses that are counted at once; further ones get no line. Each costs about 100 bytes, for a second. */
const MAX_SOURCES = 10_000
const PERIOD_MS = 1_000

/** Bounds the lines that one source of refusals causes. Forgets everything each second. */
export class RefusalBudget {
  readonly #now: () => number
  readonly #tellOmitted: (source: string, count: number) => void
  readonly #counts = new Map<string, number>()
  #startedMs = Number.NEGATIVE_INFINITY

  /**
   * @param tellOmitted Called at the end of a second, once for each source that had too many.
   * @param now A clock in milliseconds.
   */
  constructor(tellOmitted: (source: string, count: number) => void, now: () => number) {
    this.#tellOmitted = tellOmitted
    this.#now = now
  }

  /** Whether this refusal gets a line. */
  take(source: string): boolean {
    if (this.#now() - this.#startedMs >= PERIOD_MS) this.flush()
    const count = this.#counts.get(source) ?? 0
    if (count === 0 && this.#counts.size >= MAX_SOURCES) {
      // One entry, without lines of its own, for all that come too late.
      this.#counts.set('', (this.#counts.get('') ?? LINES_PER_SECOND) + 1)
      return false
    }
    this.#counts.set(source, count + 1)
    return count < LINES_PER_SECOND
  }

  /** Begins a new second. */
  flush(): void {
    for (const [source, count] of this.#counts) {
      if (count > LINES_PER_SECOND) this.#tellOmitted(source, count - LINES_PER_SECOND)
    }
    this.#counts.clear()
    this.#startedMs = this.#now()
  }
}
