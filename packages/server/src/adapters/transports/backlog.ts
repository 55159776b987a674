import type { GroupOverflow } from '../../kernel/ports/transport.js'

/** Waiting bytes from which on a member whose socket is full lags: less leaves in one write anyway. */
export const LAG_BYTES = 16 * 1024
/** Share of `maxOutboxBytes` that waits at most of messages of which the oldest are left out. */
const OLDEST_SHARE = 1 / 4
/** Entries that are left out before the others are moved together. */
const MIN_LEFT_OUT = 64

/** What the groups of a connection say about a message that may be left out. */
export interface Droppable {
  readonly topic: number
  readonly policy: GroupOverflow['policy']
  /** What its groups are told: the text of their time, as their numbers are reused. */
  readonly told: readonly string[]
}

interface Entry<Frame> {
  /** Absent: it is left out here. */
  frame: Frame | undefined
  readonly byteLength: number
  readonly droppable: Droppable | undefined
}

export interface LeftOut {
  conflatedCount: number
  droppedCount: number
}

/**
 * Messages that wait for a connection that lags, of which some may still be left out. Keeps their order.
 * Cost: a constant per message.
 */
export class Backlog<Frame> {
  readonly #maxOldestBytes: number
  readonly #leftOut: LeftOut
  #entries: Entry<Frame>[] = []
  /** The newest message of each topic of `latest`. */
  readonly #latest = new Map<number, Entry<Frame>>()
  /** Messages of `drop-oldest`, oldest first, from `#oldestIndex` on. */
  #oldest: Entry<Frame>[] = []
  #oldestIndex = 0
  #oldestBytes = 0
  #leftOutCount = 0
  readonly #notices = new Set<string>()
  /** With one of each notice. */
  byteLength = 0

  /** @param leftOut Counts what is left out. */
  constructor(maxOutboxBytes: number, leftOut: LeftOut) {
    this.#maxOldestBytes = maxOutboxBytes * OLDEST_SHARE
    this.#leftOut = leftOut
  }

  /** @param droppable Absent: the message is never left out. */
  push(frame: Frame, byteLength: number, droppable: Droppable | undefined): void {
    const entry = { frame, byteLength, droppable }
    this.#entries.push(entry)
    this.byteLength += byteLength
    if (droppable === undefined) return
    for (const text of droppable.told) this.#count(text)
    if (droppable.policy === 'latest') this.#replace(entry, droppable.topic)
    else this.#dropOldest(entry)
    if (2 * this.#leftOutCount > this.#entries.length + MIN_LEFT_OUT) this.#compact()
  }

  /** All messages in their order, with what groups are told of those that are left out. */
  *frames(notice: (text: string) => Frame): Generator<Frame> {
    const open = new Set<string>()
    for (const { frame, droppable } of this.#entries) {
      if (frame === undefined) {
        for (const text of droppable?.told ?? []) {
          if (!open.has(text)) yield notice(text)
          open.add(text)
        }
        continue
      }
      close(open, droppable)
      yield frame
    }
  }

  #count(notice: string): void {
    if (this.#notices.has(notice)) return
    this.#notices.add(notice)
    this.byteLength += Buffer.byteLength(notice)
  }

  #replace(entry: Entry<Frame>, topic: number): void {
    const older = this.#latest.get(topic)
    this.#latest.set(topic, entry)
    if (older === undefined) return
    this.#leave(older)
    this.#leftOut.conflatedCount++
  }

  #dropOldest(entry: Entry<Frame>): void {
    this.#oldest.push(entry)
    this.#oldestBytes += entry.byteLength
    while (this.#oldestBytes > this.#maxOldestBytes && this.#oldestIndex < this.#oldest.length - 1) {
      const oldest = this.#oldest[this.#oldestIndex++]
      if (oldest === undefined) break
      this.#oldestBytes -= oldest.byteLength
      this.#leave(oldest)
      this.#leftOut.droppedCount++
    }
    if (2 * this.#oldestIndex > this.#oldest.length) {
      this.#oldest = this.#oldest.slice(this.#oldestIndex)
      this.#oldestIndex = 0
    }
  }

  #leave(entry: Entry<Frame>): void {
    entry.frame = undefined
    this.byteLength -= entry.byteLength
    this.#leftOutCount++
  }

  /** Removes what is left out, except the first of each gap that is told. */
  #compact(): void {
    const open = new Set<string>()
    this.#leftOutCount = 0
    this.#entries = this.#entries.filter(({ frame, droppable }) => {
      if (frame !== undefined) {
        close(open, droppable)
        return true
      }
      const isNew = droppable?.told.some((text) => !open.has(text)) === true
      for (const text of droppable?.told ?? []) open.add(text)
      if (isNew) this.#leftOutCount++
      return isNew
    })
  }
}

/** A message ends the gaps of its groups that were told; one that is never left out does not say its groups. */
function close(open: Set<string>, droppable: Droppable | undefined): void {
  if (droppable === undefined) open.clear()
  else for (const text of droppable.told) open.delete(text)
}
