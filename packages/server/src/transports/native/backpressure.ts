import type { TransportStats } from '../../ports/transport.js'

/** Publishers wait no longer than this: then the limits of the outboxes decide who is too slow. */
const MAX_WAIT_MS = 1_000
/**
 * Unless the connections take so much each, on the average, in that time: then they are not slow but many, and get through what
 * waits for them before long. A flood to 10,000 has more under way than the machine can read in a second.
 */
const MIN_TAKEN_BYTES = 32 * 1024

/** Lets publishers wait while the engine, or who reads from it, cannot take what is published. */
export class NativeBackpressure {
  readonly #stats: () => Pick<TransportStats, 'connections' | 'sentByteCount'>
  #relief: Promise<void> | undefined
  #resolve: (() => void) | undefined
  #timer: NodeJS.Timeout | undefined
  /** A wait has taken too long: there is no other before this time of saturation is over. */
  #hasGivenUp = false

  constructor(stats: () => Pick<TransportStats, 'connections' | 'sentByteCount'>) {
    this.#stats = stats
  }

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
      this.#wait(this.#stats().sentByteCount)
    }
  }

  #wait(sentByteCount: number): void {
    this.#timer = setTimeout(() => {
      const stats = this.#stats()
      if (stats.sentByteCount - sentByteCount >= MIN_TAKEN_BYTES * stats.connections) {
        this.#wait(stats.sentByteCount)
        return
      }
      this.#hasGivenUp = true
      this.#end()
    }, MAX_WAIT_MS)
  }

  #end(): void {
    if (this.#relief === undefined) return
    clearTimeout(this.#timer)
    this.#relief = undefined
    this.#resolve?.()
  }
}
