const FINAL = 0x80
const OPCODE = 0x0f
const FIRST_CONTROL_OPCODE = 8
const CLOSE = 8
const MASKED = 0x80
const LENGTH = 0x7f
const MASK_BYTES = 4

/**
 * Follows the frames of a client (RFC 6455 §5.2), to know whether a message has begun and not ended; `ws` does not say it.
 * It checks nothing: `ws` refuses what violates the RFC.
 */
export class FrameBoundaries {
  #firstByte = 0
  /** Received bytes of an incomplete header; 0 outside of headers. */
  #headerBytes = 0
  #headerLength = 2
  #payloadBytes = 0
  #maskBytes = 0
  /** Bytes of the current frame that are still to come. */
  #leftBytes = 0
  /** A message has begun whose last fragment is still to come. */
  #isFragmented = false
  /** Received bytes of the incomplete message; 0 between messages. */
  partialBytes = 0
  hasClosed = false

  /** Takes received bytes. Returns whether a message has ended in them. */
  read(chunk: Uint8Array): boolean {
    let endedAt = -1
    for (let at = 0; at < chunk.length; ) {
      if (this.#leftBytes > 0) {
        const takenBytes = Math.min(this.#leftBytes, chunk.length - at)
        this.#leftBytes -= takenBytes
        at += takenBytes
      } else this.#readHeader(chunk[at++] ?? 0)
      if (this.#leftBytes === 0 && this.#headerBytes === 0 && this.#endsMessage()) endedAt = at
    }
    this.partialBytes = endedAt < 0 ? this.partialBytes + chunk.length : chunk.length - endedAt
    return endedAt >= 0
  }

  #readHeader(byte: number): void {
    const index = this.#headerBytes++
    if (index === 0) {
      this.#firstByte = byte
      this.#headerLength = 2
      return
    }
    if (index === 1) {
      const length = byte & LENGTH
      this.#headerLength = length === 126 ? 4 : length === 127 ? 10 : 2
      this.#payloadBytes = length < 126 ? length : 0
      this.#maskBytes = (byte & MASKED) === 0 ? 0 : MASK_BYTES
    } else this.#payloadBytes = this.#payloadBytes * 256 + byte
    if (this.#headerBytes < this.#headerLength) return
    this.#headerBytes = 0
    this.#leftBytes = this.#maskBytes + this.#payloadBytes
  }

  /** Whether nothing is incomplete after the frame that has just ended. Control frames may come between fragments. */
  #endsMessage(): boolean {
    const opcode = this.#firstByte & OPCODE
    if (opcode < FIRST_CONTROL_OPCODE) this.#isFragmented = (this.#firstByte & FINAL) === 0
    else if (opcode === CLOSE) this.hasClosed = true
    return !this.#isFragmented
  }
}
