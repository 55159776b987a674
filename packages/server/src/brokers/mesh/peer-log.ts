import { FRAME } from './frames.js'
import type { KeyWriter } from './key-codec.js'
import type { LogCopy } from './log-copy.js'
import { encodeNumbers } from './log-frames.js'
import { messageIdBytes } from './message-frame.js'
import type { Origin } from './origins.js'
import type { Outbox } from './outbox.js'
import type { Trace } from './trace.js'

/** What is read from the log for a peer at once; the next is read when the peer has taken it in. */
const PAGE_BYTES = 256 * 1024

/** Of no origin. */
const NOBODY = 2 ** 40

/** How a node and one peer share their logs: what the peer has, and what it wants that this node has. */
export class PeerLog {
  /** The lives that the peer speaks of, by its numbers. */
  readonly origins = new Map<number, Origin>()
  /** How its log goes, as it tells. */
  trace: Trace | undefined
  /** This node's number of a life that the peer speaks of; none that exists for one it has not named. */
  readonly indexOf = (theirs: number): number => this.origins.get(theirs)?.index ?? NOBODY
  /** What it has, when it has said so last: the last sequence of each. */
  readonly holdings = new Map<Origin, number>()
  /** Whether its messages come as it accepts them. */
  isFed = false
  /** Whether this node's own messages go to it as they are accepted. */
  isLive = false
  readonly #copy: LogCopy
  readonly #outbox: Outbox
  readonly #keys: KeyWriter
  readonly #wanted = new Map<Origin, number>()
  /** As it was asked for. */
  readonly #asked = new Map<Origin, number>()
  #cursor = 0
  #pageSequence = 0

  constructor(copy: LogCopy, outbox: Outbox, keys: KeyWriter) {
    this.#copy = copy
    this.#outbox = outbox
    this.#keys = keys
  }

  /** It wants the messages of an origin after this one. Takes effect with `feed`. */
  want(origin: Origin, after: number): void {
    this.#wanted.set(origin, after)
    this.#asked.set(origin, after)
    this.#cursor = 0
  }

  /** Adds the next page of what is wanted to the outbox, once the page before has been taken in. Whether anything was added. */
  feed(nowMs: number): boolean {
    if (this.#wanted.size === 0 || this.#outbox.ackedSequence < this.#pageSequence) return false
    this.#tellHoles(nowMs)
    const { order } = this.#copy
    let byteCount = 0
    let offset = Math.max(this.#cursor, order.heldAfter) + 1
    for (; offset <= order.last && byteCount < PAGE_BYTES; offset++) byteCount += this.#feedOne(offset, nowMs)
    this.#cursor = offset - 1
    if (this.#cursor >= order.last) this.#end()
    this.#pageSequence = this.#outbox.lastSequence
    return true
  }

  #feedOne(offset: number, nowMs: number): number {
    const { order, log, origins } = this.#copy
    const origin = origins.at(order.originAt(offset))
    const after = origin === undefined ? undefined : this.#wanted.get(origin)
    const sequence = order.sequenceAt(offset)
    if (origin === undefined || after === undefined || sequence <= after) return 0
    const message = log.at(offset)
    if (message === undefined) return 0
    this.#wanted.set(origin, sequence)
    const { key, payload, isBinary, timeMs } = message
    const ageMs = Math.max(0, nowMs - timeMs)
    const messageId = messageIdBytes(order.idAt(offset))
    this.#outbox.addMarked(
      { isBinary, sequence, origin: origin.index, ageMs, messageId },
      this.#keys.bytesOf(key),
      payload,
    )
    return payload.length + key.length
  }

  /** What has gone from the log before it was sent. */
  #tellHoles(nowMs: number): void {
    const { goneTimeMs } = this.#copy
    for (const [origin, after] of this.#wanted) {
      if (origin.lost <= after) continue
      this.#wanted.set(origin, origin.lost)
      this.#outbox.add(FRAME.hole, encodeNumbers([origin.index, origin.lost, Math.max(0, nowMs - goneTimeMs)]))
    }
  }

  /** Of what was asked for, messages that are not in the log because others with their ids are, or that are in place of others. */
  #tellDuplicates(): void {
    const isAsked = (origin: Origin, sequence: number) =>
      sequence > (this.#asked.get(origin) ?? Number.POSITIVE_INFINITY)
    const told = this.#copy.duplicates.filter(
      ({ origin, sequence, original, originalSequence }) =>
        original.lost < originalSequence && (isAsked(origin, sequence) || isAsked(original, originalSequence)),
    )
    if (told.length === 0) return
    const numbers = told.flatMap(({ origin, sequence, original, originalSequence }) => [
      origin.index,
      sequence,
      original.index,
      originalSequence,
    ])
    this.#outbox.add(FRAME.leftOut, encodeNumbers(numbers))
  }

  #end(): void {
    const ended = [...this.#wanted.keys()]
    this.#tellDuplicates()
    this.#wanted.clear()
    this.#asked.clear()
    this.#outbox.add(FRAME.fed, encodeNumbers(ended.flatMap(({ index, known }) => [index, known])))
    if (ended.includes(this.#copy.origins.own)) this.isLive = true
  }
}
