/** After this time the engine is asked again; its `backpressure.rs` has the rules and the limits. */
const ASK_AGAIN_MS = 1_000

/** Tells publishers when to wait for the engine. */
export class NativeBackpressure {
  readonly #isWritable: () => boolean
  #writable: Promise<void> | undefined
  #resolve: (() => void) | undefined
  #timer: NodeJS.Timeout | undefined

  /** @param isWritable Asks the engine whether more may be published. */
  constructor(isWritable: () => boolean) {
    this.#isWritable = isWritable
  }

  /** Resolves within a second: then ask again. `undefined`: more may be published now. */
  get writable(): Promise<void> | undefined {
    return this.#writable
  }

  /** @param isWritable The latest answer of the engine. */
  note(isWritable: boolean): void {
    if (isWritable) this.#end()
    else if (this.#writable === undefined) {
      this.#writable = new Promise((resolve) => {
        this.#resolve = resolve
      })
      this.#timer = setTimeout(() => {
        this.#end()
        this.note(this.#isWritable())
      }, ASK_AGAIN_MS)
    }
  }

  #end(): void {
    if (this.#writable === undefined) return
    clearTimeout(this.#timer)
    this.#writable = undefined
    this.#resolve?.()
  }
}
