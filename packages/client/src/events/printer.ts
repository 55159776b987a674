const WINDOW_MS = 10_000

/**
 * Prints the errors that nobody handles. While the same one comes again and again, as of refused messages or of a faulty
 * handler, it prints it once in 10 s, with the number of those in between.
 */
export class Printer {
  #text: string | undefined
  #endMs = 0
  #count = 0

  print(error: unknown): void {
    const text = (error as Error | undefined)?.message
    const now = Date.now()
    if (text === this.#text && now < this.#endMs) {
      this.#count++
      return
    }
    console.error(error, ...(this.#count ? [`and ${this.#count} more`] : []))
    this.#text = text
    this.#endMs = now + WINDOW_MS
    this.#count = 0
  }
}
