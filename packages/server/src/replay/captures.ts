import { type GapReason, matches } from 'webmq-client/protocol'
import type { InboundMessage } from '../ports/broker.js'
import { copyBytes } from '../ports/copy-bytes.js'

/** Live messages of a pattern, kept while its listen waits for the broker; in order. */
export class Capture {
  readonly pattern: string
  readonly messages: InboundMessage[] = []
  /** Set when the broker has told a gap meanwhile: what was read from its log may end before what is live begins. */
  gap: GapReason | undefined
  readonly #maxBytes: number
  #byteCount = 0
  #hasOverflowed = false

  constructor(pattern: string, maxBytes: number) {
    this.pattern = pattern
    this.#maxBytes = maxBytes
  }

  /** Whether messages were let go because there were too many: a gap. */
  get hasOverflowed(): boolean {
    return this.#hasOverflowed
  }

  /** Keeps a copy, and lets the oldest go that no longer fit. */
  push(message: InboundMessage): void {
    this.messages.push({ ...message, payload: copyBytes(message.payload) })
    this.#byteCount += message.payload.length
    while (this.#byteCount > this.#maxBytes) {
      this.#byteCount -= this.messages.shift()?.payload.length ?? this.#byteCount
      this.#hasOverflowed = true
    }
  }
}

/**
 * Keeps what is delivered while a listen waits for the broker's log, so that nothing is missed between the log and live.
 * With a broker that answers at once nothing is ever captured.
 */
export class Captures {
  readonly #open = new Set<Capture>()

  /** Begins to keep live messages of the pattern, at most `maxBytes` of payload. */
  start(pattern: string, maxBytes: number): Capture {
    const capture = new Capture(pattern, maxBytes)
    this.#open.add(capture)
    return capture
  }

  /** Ends it; what was kept stays with the capture. */
  end(capture: Capture): void {
    this.#open.delete(capture)
  }

  /** Live messages of the patterns that are affected may be missing before the next. */
  gap(reason: GapReason, isAffected: (pattern: string) => boolean): void {
    for (const capture of this.#open) if (isAffected(capture.pattern)) capture.gap = reason
  }

  /** A message is being delivered. Cost: O(listens that wait), mostly none. */
  deliver(message: InboundMessage): void {
    if (this.#open.size === 0) return
    for (const capture of this.#open) if (matches(capture.pattern, message.key)) capture.push(message)
  }
}
