/** Ctrl-C: it ends a run at once, or, when the run has figures to report, its window. A second one ends the bench. */
export class Interrupt {
  readonly #requested: AbortSignal
  readonly #broken = new AbortController()
  #isHeld = false

  /** @param requested Aborted when the user interrupts. */
  constructor(requested: AbortSignal) {
    this.#requested = requested
    const pass = () => {
      if (!this.#isHeld) this.#broken.abort(requested.reason)
    }
    if (requested.aborted) pass()
    else requested.addEventListener('abort', pass, { once: true })
  }

  /** Aborted when the run must end without a result. */
  get broken(): AbortSignal {
    return this.#broken.signal
  }

  /** Whether the user wants an end: a run that holds the interrupt ends its window. */
  get isRequested(): boolean {
    return this.#requested.aborted
  }

  /** From now on the run looks for {@link isRequested} itself. */
  hold(): void {
    this.#isHeld = true
  }
}
