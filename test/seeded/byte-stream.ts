import { Network } from './network.js'

/** Chances of one arrival of bytes. */
const SPLIT_SHARE = 0.1
const MERGE_SHARE = 0.15
/** A sender waits while so much is on its way. */
const WINDOW_BYTES = 65_536

/** One direction of a connection: its bytes arrive in order, in pieces of other sizes than they were sent in. */
export class ByteStream {
  readonly #take: (bytes: Buffer) => void
  /** Bytes that are lost, and closes that are not told. */
  isSwallowing = false
  bytesOnTheWay = 0
  #lastMs = 0
  #held: Buffer | undefined

  constructor(take: (bytes: Buffer) => void) {
    this.#take = take
  }

  send(bytes: Buffer, taken?: () => void): void {
    this.bytesOnTheWay += bytes.length
    this.later(() => this.#arrive(bytes))
    // The kernel takes what fits into its buffer.
    if (this.bytesOnTheWay <= WINDOW_BYTES) taken?.()
    else if (taken !== undefined) this.later(taken)
  }

  /** Behind everything that was sent. */
  later(call: () => void, leastMs = 0): void {
    this.#lastMs = Math.max(this.#lastMs, performance.now() + Math.max(leastMs, Network.current.latencyMs()))
    setTimeout(call, this.#lastMs - performance.now())
  }

  /** Nothing arrives for so long; then everything does. */
  stall(forMs: number): void {
    this.#lastMs = Math.max(this.#lastMs, performance.now() + forMs)
  }

  #arrive(bytes: Buffer): void {
    this.bytesOnTheWay -= bytes.length
    if (this.isSwallowing) return
    const chance = Network.current.chance()
    const all = this.#held === undefined ? bytes : Buffer.concat([this.#held, bytes])
    this.#held = undefined
    if (chance < SPLIT_SHARE && all.length > 1) {
      const at = 1 + Math.floor(Network.current.chance() * (all.length - 1))
      this.#hold(all.subarray(at))
      this.#take(all.subarray(0, at))
    } else if (chance < SPLIT_SHARE + MERGE_SHARE) this.#hold(all)
    else this.#take(all)
  }

  /** Until more bytes come, or a moment has passed. */
  #hold(bytes: Buffer): void {
    this.#held = bytes
    const release = () => {
      if (this.#held !== bytes) return
      this.#held = undefined
      if (!this.isSwallowing) this.#take(bytes)
    }
    this.later(release)
  }
}
