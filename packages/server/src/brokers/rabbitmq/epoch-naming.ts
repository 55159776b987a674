/** What an {@link EpochNaming} works with. */
export interface EpochNamingOptions {
  /** Bounds of the log. */
  readonly maxBytes: number
  readonly maxAgeMs: number | undefined
  /** Between 0 and 1. */
  readonly random: () => number
}

/** A log drops an eighth of itself at a time. So at least two names of the epoch are in it at any time. */
const MAX_SHARE = 1 / 4
/** The node with the lowest limit usually names the epoch, and the others have nothing to do. */
const MIN_SHARE = 1 / 8

/**
 * Tells a node that follows the log when to name its epoch there. Messages of nodes that do not follow name none, nor do
 * those of other programs. A log in which nothing names the epoch would get another one from the next node that starts.
 */
export class EpochNaming {
  readonly #maxBytes: number
  readonly #maxAgeMs: number
  #byteCount = 0
  #namedAtMs: number | undefined

  constructor({ maxBytes, maxAgeMs = Number.POSITIVE_INFINITY, random }: EpochNamingOptions) {
    const share = MIN_SHARE + random() * (MAX_SHARE - MIN_SHARE)
    this.#maxBytes = maxBytes * share
    this.#maxAgeMs = maxAgeMs * share
  }

  /** The log names the epoch here. */
  named(nowMs: number): void {
    this.#byteCount = 0
    this.#namedAtMs = nowMs
  }

  /**
   * The log has something here that names no epoch.
   * @returns Whether the caller must name the epoch now.
   */
  unnamed(byteCount: number, nowMs: number): boolean {
    this.#byteCount += byteCount
    this.#namedAtMs ??= nowMs
    const isDue = this.#byteCount > this.#maxBytes || nowMs - this.#namedAtMs > this.#maxAgeMs
    if (isDue) this.named(nowMs)
    return isDue
  }
}
