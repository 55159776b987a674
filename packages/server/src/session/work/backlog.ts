import type { MessageMemory } from '../../ports/transport.js'

/** A message as it arrived. */
export interface RawMessage {
  readonly data: Uint8Array
  readonly isBinary: boolean
  /** When it arrived, in milliseconds. */
  readonly receivedMs: number
  /** Holds `data`; release it when the message has been handled. Absent: `data` is a copy. */
  readonly memory: MessageMemory | undefined
}

/** Memory of a message beside its bytes: two objects and their places. An estimate, above 150 to 190 bytes in Node 20. */
const OVERHEAD_BYTES = 192

/** Messages of one connection that wait for its turn, in order. Whoever adds to it keeps it bounded. */
export class Backlog {
  #messages: RawMessage[] = []
  #head = 0
  #byteCount = 0

  /** Memory that the messages take. */
  get byteCount(): number {
    return this.#byteCount
  }

  get isEmpty(): boolean {
    return this.#head === this.#messages.length
  }

  /** Adds a message that stays in the transport's memory, or a copy if that cannot be held. */
  push(data: Uint8Array, isBinary: boolean, receivedMs: number, memory: MessageMemory | undefined): void {
    if (memory?.hold() === true) this.#messages.push({ data, isBinary, receivedMs, memory })
    // Not from the pool of `Buffer.from`: a small message would keep a whole slab in memory.
    else this.#messages.push({ data: new Uint8Array(data), isBinary, receivedMs, memory: undefined })
    this.#byteCount += data.length + OVERHEAD_BYTES
  }

  /** Takes the oldest message. Amortised O(1). */
  shift(): RawMessage | undefined {
    const message = this.#messages[this.#head]
    if (message === undefined) return undefined
    this.#head++
    this.#byteCount -= message.data.length + OVERHEAD_BYTES
    if (this.#head === this.#messages.length) this.#forget()
    else if (this.#head * 2 > this.#messages.length) {
      this.#messages = this.#messages.slice(this.#head)
      this.#head = 0
    }
    return message
  }

  /** Drops all messages. */
  clear(): void {
    for (const { memory } of this.#messages.slice(this.#head)) memory?.release()
    this.#forget()
  }

  #forget(): void {
    this.#messages = []
    this.#head = 0
    this.#byteCount = 0
  }
}
