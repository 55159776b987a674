/** Publishers wait no longer than this: then the limits of the outboxes decide who is too slow. */
const MAX_WAIT_MS = 1_000

/** Lets publishers wait while the engine, or who reads from it, cannot take what is published. */
export class NativeBackpressure {
  #relief: Promise<void> | undefined
  #resolve: (() => void) | undefined
  #timer: NodeJS.Timeout | undefined
  /** A wait has taken too long: there is no other before this time of saturation is over. */
  #hasGivenUp = false

  /** Resolves when more is welcome; `undefined`: it is now. */
  get relief(): Promise<void> | undefined {
    return this.#relief
  }

  /** @param isWritable Whether the engine takes more. */
  note(isWritable: boolean): void {
    if (isWritable) {
      this.#hasGivenUp = false
      this.#end()
    } else if (this.#relief === undefined && !this.#hasGivenUp) {
      this.#relief = new Promise((resolve) => {
        this.#resolve = resolve
      })
      this.#timer = setTimeout(() => {
        this.#hasGivenUp = true
        this.#end()
      }, MAX_WAIT_MS)
    }
  }

  #end(): void {
    if (this.#relief === undefined) return
    clearTimeout(this.#timer)
    this.#relief = undefined
    this.#resolve?.()
  }
}
