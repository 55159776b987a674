import type { MessagePart } from 'webmq-client/protocol'

/** Memory of a transport in which many messages lie. */
export interface RunMemory {
  /** Keeps the messages valid until `release` was called as often. Returns `false` when the transport holds too much already. */
  hold(): boolean
  release(): void
}

/** Before each message: twice its bytes, and one more if it is binary. */
const LENGTH_BYTES = 4

/**
 * Messages of one connection that arrived together, in order. It is a cursor: {@link next} goes to the next message, and
 * `bytes`, `start`, `end` and `isBinary` are of that one. Text is valid UTF-8.
 *
 * Borrowed: valid until the call returns, or from {@link keep} to {@link release}.
 */
export class MessageRun implements MessagePart {
  bytes: Uint8Array
  buffer: ArrayBufferLike
  readonly byteOffset = 0
  start = 0
  end = 0
  isBinary = false
  /** When the messages were taken from the socket, by `performance.now()`. */
  readonly receivedMs: number
  #next: number
  #end: number
  #memory: RunMemory | undefined

  /**
   * @param bytes All of its buffer; from `start` to `end`, each message has its length before it.
   * @param memory What they lie in, if it can be held.
   */
  constructor(bytes: Uint8Array, start: number, end: number, receivedMs: number, memory?: RunMemory) {
    this.bytes = bytes
    this.buffer = bytes.buffer
    this.receivedMs = receivedMs
    this.#next = start
    this.#end = end
    this.#memory = memory
  }

  /** A run of one message, which is copied. */
  static of(data: Uint8Array, isBinary: boolean): MessageRun {
    const bytes = new Uint8Array(LENGTH_BYTES + data.length)
    new DataView(bytes.buffer).setUint32(0, data.length * 2 + Number(isBinary), true)
    bytes.set(data, LENGTH_BYTES)
    return new MessageRun(bytes, 0, bytes.length, performance.now())
  }

  /** Bytes of the messages that are still to come, with their lengths. */
  get byteCount(): number {
    return this.#end - this.#next
  }

  /** Goes to the next message. Returns `false` at the end. */
  next(): boolean {
    const { bytes } = this
    const at = this.#next
    if (at >= this.#end) return false
    // As in a DataView, which would be an object per run.
    const low = (bytes[at] as number) | ((bytes[at + 1] as number) << 8) | ((bytes[at + 2] as number) << 16)
    const length = low + (bytes[at + 3] as number) * 0x1000000
    this.isBinary = (low & 1) === 1
    this.start = at + LENGTH_BYTES
    this.end = this.start + Math.floor(length / 2)
    this.#next = this.end
    return true
  }

  /** The messages that are still to come stay valid until {@link release}: where they lie, or as a copy. */
  keep(): void {
    if (this.#memory?.hold() === true) return
    this.#memory = undefined
    this.bytes = new Uint8Array(this.bytes.subarray(this.#next, this.#end))
    this.buffer = this.bytes.buffer
    this.#end -= this.#next
    this.#next = 0
  }

  /** Ends {@link keep}, once. */
  release(): void {
    this.#memory?.release()
  }
}
