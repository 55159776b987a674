/**
 * Smaller pieces are copied together. Each would cost some 110 bytes beside its own, and keep alive the 8 KiB of Node's pool that
 * it is a part of. Larger ones stay as they are: other connections may wait for the same bytes.
 */
const SMALL_BYTES = 128
const CHUNK_BYTES = 1_024
const NO_CHUNK = Buffer.alloc(0)

/** Bytes that wait for a socket, in order. */
export class PieceQueue {
  #pieces: Buffer[] = []
  /** Where small pieces are copied to. Those from `#begin` to `#end` are the last ones, and no piece yet. */
  #chunk = NO_CHUNK
  #begin = 0
  #end = 0
  byteLength = 0

  get isEmpty(): boolean {
    return this.byteLength === 0
  }

  /** @param piece Not empty. Kept, unless it is small. */
  push(piece: Buffer): void {
    const { length } = piece
    this.byteLength += length
    if (length >= SMALL_BYTES) {
      this.#endJoined()
      this.#pieces.push(piece)
      return
    }
    if (this.#end + length > this.#chunk.length) {
      this.#endJoined()
      this.#chunk = Buffer.allocUnsafeSlow(CHUNK_BYTES)
      this.#begin = 0
      this.#end = 0
    }
    this.#chunk.set(piece, this.#end)
    this.#end += length
  }

  /** Takes the oldest pieces, until they have this many bytes or none is left. */
  take(byteCount = Number.POSITIVE_INFINITY): Buffer[] {
    this.#endJoined()
    let count = 0
    let bytes = 0
    while (count < this.#pieces.length && bytes < byteCount) bytes += this.#pieces[count++]?.length ?? 0
    this.byteLength -= bytes
    if (this.isEmpty) {
      this.#chunk = NO_CHUNK
      this.#begin = 0
      this.#end = 0
    }
    return this.#pieces.splice(0, count)
  }

  #endJoined(): void {
    if (this.#end > this.#begin) this.#pieces.push(this.#chunk.subarray(this.#begin, this.#end))
    this.#begin = this.#end
  }
}
