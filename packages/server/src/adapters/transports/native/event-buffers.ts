import type { RunMemory } from '../../../kernel/ports/message-run.js'
import type { EventPortion } from './events.js'

/** Size of a buffer for events. A larger message gets its own buffer. */
const BUFFER_BYTES = 128 * 1024
/** Buffers that may be held at once for messages that wait. Beyond that messages are copied. */
const MAX_HELD_BYTES = 8 * 1024 * 1024
const MAX_FREE_BUFFERS = 8

/** A buffer of packed events. It is filled again when all its events are handled and nobody holds its messages. */
class EventBuffer implements EventPortion, RunMemory {
  readonly packed: Buffer
  start = 0
  end = 0
  receivedMs = 0
  holdCount = 0
  /** Another buffer takes the further events. */
  isLeft = false
  readonly #buffers: EventBuffers

  constructor(sizeBytes: number, buffers: EventBuffers) {
    this.packed = Buffer.allocUnsafeSlow(sizeBytes)
    this.#buffers = buffers
  }

  get memory(): RunMemory {
    return this
  }

  hold(): boolean {
    if (this.holdCount === 0 && !this.#buffers.mayHold(this)) return false
    this.holdCount++
    return true
  }

  release(): void {
    this.holdCount--
    if (this.holdCount === 0) this.#buffers.released(this)
  }
}

/** The buffers that the engine's events are taken into, one after the other: messages that must wait stay in theirs. */
export class EventBuffers {
  readonly #drain: (packed: Buffer) => number
  #current: EventBuffer
  readonly #free: EventBuffer[] = []
  #heldBytes = 0

  /** @param drain Fills a buffer; returns the length, or the size that the next event needs as a negative number. */
  constructor(drain: (packed: Buffer) => number) {
    this.#drain = drain
    this.#current = new EventBuffer(BUFFER_BYTES, this)
  }

  /** Some events of the last portion are still to be handled. */
  get isBegun(): boolean {
    return this.#current.start < this.#current.end
  }

  /** Of the last portion. */
  get handledBytes(): number {
    return this.#current.start
  }

  /** Events that are still to be handled; `undefined`: there are none. */
  next(): EventPortion | undefined {
    if (this.isBegun) return this.#current
    this.#replace()
    let length = this.#drain(this.#current.packed)
    if (length < 0) {
      this.#leave()
      this.#current = new EventBuffer(-length, this)
      length = Math.max(0, this.#drain(this.#current.packed))
    }
    this.#current.start = 0
    this.#current.end = length
    this.#current.receivedMs = performance.now()
    return length > 0 ? this.#current : undefined
  }

  mayHold({ packed }: EventBuffer): boolean {
    if (this.#heldBytes + packed.length > MAX_HELD_BYTES) return false
    this.#heldBytes += packed.length
    return true
  }

  released(buffer: EventBuffer): void {
    this.#heldBytes -= buffer.packed.length
    if (buffer.isLeft) this.#recycle(buffer)
  }

  /** Makes sure that the current buffer may be filled. */
  #replace(): void {
    const { holdCount, packed } = this.#current
    if (holdCount === 0 && packed.length === BUFFER_BYTES) return
    this.#leave()
    this.#current = this.#free.pop() ?? new EventBuffer(BUFFER_BYTES, this)
    this.#current.isLeft = false
  }

  #leave(): void {
    const left = this.#current
    left.isLeft = true
    if (left.holdCount === 0) this.#recycle(left)
  }

  #recycle(buffer: EventBuffer): void {
    if (buffer.packed.length === BUFFER_BYTES && this.#free.length < MAX_FREE_BUFFERS) this.#free.push(buffer)
  }
}
