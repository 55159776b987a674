/** What {@link LogTags} works with. */
export interface LogTagsOptions {
  /** Bytes that are logged without anything among them that names the epoch; a small part of what the log holds. */
  readonly maxBytes: number
  /** Writes a mark that does. */
  readonly write: () => void
  readonly random?: () => number
}

/** The same in time: what tells no time of its own is taken for as old as the last that did. */
const MAX_MS = 60_000
/** What RabbitMQ writes for a message beside its payload, at least. */
const MESSAGE_OVERHEAD_BYTES = 128

/**
 * Sees to it that the epoch is named in every part of a log: messages of nodes do, those of other programs do not, and what named it before goes with
 * age. Of many nodes one does it, mostly: each waits for up to twice as long, by chance.
 */
export class LogTags {
  readonly #options: LogTagsOptions
  readonly #random: () => number
  #byteCount = 0
  #limitBytes = 0
  #timer: NodeJS.Timeout | undefined
  #isStopped = false

  constructor(options: LogTagsOptions) {
    this.#options = options
    this.#random = options.random ?? Math.random
  }

  /** Something came that names the epoch. */
  named(): void {
    if (this.#byteCount === 0) return
    this.#byteCount = 0
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  /** A message came that does not. */
  unnamed(byteCount: number): void {
    if (this.#isStopped) return
    if (this.#byteCount === 0) {
      const share = 1 + this.#random()
      this.#limitBytes = this.#options.maxBytes * share
      this.#timer = setTimeout(() => this.#write(), MAX_MS * share).unref()
    }
    const before = this.#byteCount
    this.#byteCount += byteCount + MESSAGE_OVERHEAD_BYTES
    // Once, until it has come back.
    if (before < this.#limitBytes && this.#byteCount >= this.#limitBytes) this.#write()
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  #write(): void {
    if (!this.#isStopped) this.#options.write()
  }
}
