import type { GapReason } from 'webmq-client/protocol'
import { copyBytes } from '../base/copy-bytes.js'
import type { InboundMessage } from '../ports/broker.js'
import type { GroupId } from '../ports/transport.js'

/** Memory of a message beside its key and payload: two objects, a position, and their places. */
const OVERHEAD_BYTES = 256
/** Of its attributes, if it has any: an object, and its texts. */
const ATTRIBUTES_BYTES = 512

/** Live messages of one pattern that arrive while its listen reads the log; oldest first. */
export class LiveBuffer {
  readonly pattern: string
  readonly messages: InboundMessage[] = []
  /** Set when the broker reports a gap meanwhile: the log may end before the live messages begin. */
  gap: GapReason | undefined
  readonly #maxBytes: number
  #byteCount = 0
  /** Whether messages were dropped because they were too many: a gap. */
  hasOverflowed = false

  constructor(pattern: string, maxBytes: number) {
    this.pattern = pattern
    this.#maxBytes = maxBytes
  }

  /** @param message Kept: the buffers of a message share one copy. Drops the oldest messages that no longer fit. */
  push(message: InboundMessage): void {
    this.messages.push(message)
    this.#byteCount += byteCountOf(message)
    while (this.#byteCount > this.#maxBytes) {
      const oldest = this.messages.shift()
      this.#byteCount -= oldest === undefined ? this.#byteCount : byteCountOf(oldest)
      this.hasOverflowed = true
    }
  }
}

/**
 * Buffers live messages while a listen reads the broker's log, so that nothing is missed between the log and live.
 * A listen that is answered at once needs no buffer.
 */
export class LiveBuffers {
  readonly #byGroup = new Map<GroupId, Set<LiveBuffer>>()

  /** Starts to buffer live messages of a routed pattern, at most `maxBytes` of memory. */
  start({ pattern, group }: { readonly pattern: string; readonly group: GroupId }, maxBytes: number): LiveBuffer {
    const buffer = new LiveBuffer(pattern, maxBytes)
    const buffers = this.#byGroup.get(group)
    if (buffers === undefined) this.#byGroup.set(group, new Set([buffer]))
    else buffers.add(buffer)
    return buffer
  }

  /** Stops buffering; the buffer keeps its messages. */
  end(group: GroupId, buffer: LiveBuffer): void {
    const buffers = this.#byGroup.get(group)
    if (buffers?.delete(buffer) && buffers.size === 0) this.#byGroup.delete(group)
  }

  gap(reason: GapReason, isAffected: (pattern: string) => boolean): void {
    for (const buffers of this.#byGroup.values()) {
      for (const buffer of buffers) if (isAffected(buffer.pattern)) buffer.gap = reason
    }
  }

  /** A message is being delivered to these groups. Cost: O(groups) while a buffer is open, usually none. */
  deliver(groups: readonly GroupId[], message: InboundMessage): void {
    if (this.#byGroup.size === 0) return
    let copy: InboundMessage | undefined
    for (const group of groups) {
      for (const buffer of this.#byGroup.get(group) ?? []) {
        copy ??= { ...message, payload: copyBytes(message.payload) }
        buffer.push(copy)
      }
    }
  }
}

/** A character of a key takes one or two bytes; two are counted. */
function byteCountOf({ key, payload, attributes }: InboundMessage): number {
  const attributesBytes = attributes === undefined ? 0 : ATTRIBUTES_BYTES
  return 2 * key.length + payload.length + attributesBytes + OVERHEAD_BYTES
}
