import { type GapReason, matches } from 'webmq-client/protocol'
import type { InboundMessage } from '../ports/broker.js'
import { copyBytes } from '../ports/copy-bytes.js'

/** Memory of a message beside its key and payload: two objects, a position, and their places. */
const OVERHEAD_BYTES = 256

/** Live messages of one pattern that arrive while its listen reads the log; oldest first. */
export class LiveBuffer {
  readonly pattern: string
  readonly messages: InboundMessage[] = []
  /** Set when the broker reports a gap meanwhile: the log may end before the live messages begin. */
  gap: GapReason | undefined
  readonly #maxBytes: number
  #byteCount = 0
  #hasOverflowed = false

  constructor(pattern: string, maxBytes: number) {
    this.pattern = pattern
    this.#maxBytes = maxBytes
  }

  /** Whether messages were dropped because they were too many: a gap. */
  get hasOverflowed(): boolean {
    return this.#hasOverflowed
  }

  /** Keeps a copy, and drops the oldest messages that no longer fit. */
  push(message: InboundMessage): void {
    this.messages.push({ ...message, payload: copyBytes(message.payload) })
    this.#byteCount += byteCountOf(message)
    while (this.#byteCount > this.#maxBytes) {
      const oldest = this.messages.shift()
      this.#byteCount -= oldest === undefined ? this.#byteCount : byteCountOf(oldest)
      this.#hasOverflowed = true
    }
  }
}

/**
 * Buffers live messages while a listen reads the broker's log, so that nothing is missed between the log and live.
 * A broker that answers at once needs no buffer.
 */
export class LiveBuffers {
  readonly #open = new Set<LiveBuffer>()

  /** Starts to buffer live messages of the pattern, at most `maxBytes` of memory. */
  start(pattern: string, maxBytes: number): LiveBuffer {
    const buffer = new LiveBuffer(pattern, maxBytes)
    this.#open.add(buffer)
    return buffer
  }

  /** Stops buffering; the buffer keeps its messages. */
  end(buffer: LiveBuffer): void {
    this.#open.delete(buffer)
  }

  /** Live messages of the affected patterns may be missing before the next one. */
  gap(reason: GapReason, isAffected: (pattern: string) => boolean): void {
    for (const buffer of this.#open) if (isAffected(buffer.pattern)) buffer.gap = reason
  }

  /** A message is being delivered. Cost: O(open buffers), usually none. */
  deliver(message: InboundMessage): void {
    if (this.#open.size === 0) return
    for (const buffer of this.#open) if (matches(buffer.pattern, message.key)) buffer.push(message)
  }
}

/** A character of a key takes one or two bytes; two are counted. */
function byteCountOf({ key, payload }: InboundMessage): number {
  return 2 * key.length + payload.length + OVERHEAD_BYTES
}
