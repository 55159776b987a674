import { FRAME_HEAD_BYTES } from './frames.js'

const LENGTH_BYTES = 4

/**
 * Receives one whole frame: its type, and where its body begins and ends.
 * @param bytes Valid until the call returns.
 */
export type OnFrame = (type: number, bytes: Buffer, start: number, end: number) => void

/**
 * Finds frames in the chunks of a socket. Frames are read in place; only a frame that spans several chunks is copied.
 */
export class FrameReader {
  /** Largest allowed frame, type included. Unauthenticated peers cannot make the node allocate more. */
  maxFrameBytes: number
  readonly #onFrame: OnFrame
  #isStopped = false
  /** Beginning of an incomplete frame, or of its length. */
  #partial: Buffer | undefined
  #filled = 0

  constructor(maxFrameBytes: number, onFrame: OnFrame) {
    this.maxFrameBytes = maxFrameBytes
    this.#onFrame = onFrame
  }

  /** Stops at once, even within the current chunk. */
  stop(): void {
    this.#isStopped = true
    this.#partial = undefined
  }

  /**
   * Hands on every complete frame.
   * @throws {RangeError} when a frame is empty, or larger than allowed.
   */
  push(chunk: Buffer): void {
    let at = this.#partial === undefined ? 0 : this.#complete(chunk)
    const { length } = chunk
    while (!this.#isStopped) {
      const bodyAt = at + FRAME_HEAD_BYTES
      if (bodyAt > length) break
      const end = at + LENGTH_BYTES + this.#lengthAt(chunk, at)
      if (end > length) break
      this.#onFrame(chunk[at + LENGTH_BYTES] as number, chunk, bodyAt, end)
      at = end
    }
    if (!this.#isStopped && at < length) this.#keep(chunk, at)
  }

  /** Completes the partial frame; returns where the next frame begins. */
  #complete(chunk: Buffer): number {
    let taken = 0
    while (this.#partial !== undefined && !this.#isStopped) {
      const count = Math.min(this.#partial.length - this.#filled, chunk.length - taken)
      chunk.copy(this.#partial, this.#filled, taken, taken + count)
      this.#filled += count
      taken += count
      if (this.#filled < this.#partial.length) return taken
      const frame = this.#partial
      if (frame.length === LENGTH_BYTES) {
        this.#partial = Buffer.allocUnsafeSlow(LENGTH_BYTES + this.#lengthAt(frame, 0))
        frame.copy(this.#partial)
        continue
      }
      this.#partial = undefined
      this.#onFrame(frame[LENGTH_BYTES] as number, frame, FRAME_HEAD_BYTES, frame.length)
    }
    return taken
  }

  /** Keeps the beginning of a frame until the rest arrives. */
  #keep(chunk: Buffer, at: number): void {
    const rest = chunk.length - at
    const size = rest < LENGTH_BYTES ? LENGTH_BYTES : LENGTH_BYTES + this.#lengthAt(chunk, at)
    this.#partial = Buffer.allocUnsafeSlow(size)
    this.#filled = chunk.copy(this.#partial, 0, at)
  }

  #lengthAt(bytes: Buffer, at: number): number {
    const length =
      (bytes[at] as number) +
      (bytes[at + 1] as number) * 0x100 +
      (bytes[at + 2] as number) * 0x1_0000 +
      (bytes[at + 3] as number) * 0x100_0000
    if (length === 0 || length > this.maxFrameBytes) {
      throw new RangeError(`a frame of ${length} bytes, at least 1 and at most ${this.maxFrameBytes} are allowed`)
    }
    return length
  }
}
