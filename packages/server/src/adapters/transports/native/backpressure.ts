import { type Deferred, deferred } from '../../../kernel/base/deferred.js'

/** After this time the engine is asked again. Its `backpressure.rs` has the rules and limits. */
const ASK_AGAIN_MS = 1_000

export class NativeBackpressure {
  readonly #isWritable: () => boolean
  #writable: Deferred<void> | undefined
  #timer: NodeJS.Timeout | undefined

  /** @param isWritable Asks the engine whether more may be published. */
  constructor(isWritable: () => boolean) {
    this.#isWritable = isWritable
  }

  /** Resolves within a second; then ask again. `undefined`: publish on. */
  get writable(): Promise<void> | undefined {
    return this.#writable?.promise
  }

  /** @param isWritable The latest answer of the engine. */
  note(isWritable: boolean): void {
    if (isWritable) this.#end()
    else if (this.#writable === undefined) {
      this.#writable = deferred()
      this.#timer = setTimeout(() => {
        this.#end()
        this.note(this.#isWritable())
      }, ASK_AGAIN_MS)
    }
  }

  #end(): void {
    if (this.#writable === undefined) return
    clearTimeout(this.#timer)
    this.#writable.resolve()
    this.#writable = undefined
  }
}
