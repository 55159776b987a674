import { decodeAttributes, type MessageAttributes } from '../../../kernel/ports/attributes.js'
import type { ReadResult } from '../../../kernel/ports/broker.js'
import {
  isDelete,
  isFinalRollUp,
  isRollUp,
  partsOfRollUp,
  type StreamView,
  upToOf,
} from '../../../kernel/ports/roll-up.js'
import type { Wants } from './segmented-log.js'

/** Steps to decode the place of a message in its stream. */
const DECODE_STEPS = 8

/** The streams of a log that have ended and have a roll-up there, which stands for their messages. */
export class RolledUp {
  /**
   * Offsets of the roll-ups, in their order, by stream and key. A stream has one; of more, the first counts. A stream that was
   * deleted has none.
   */
  readonly #offsets = new Map<string, number>()
  /** Where the stream of the last one of each key had ended. */
  readonly #ends = new Map<string, number>()
  #hasAny = false

  /** @param heldAfter The log has dropped what is before. */
  note(key: string, payload: Uint8Array, attributes: MessageAttributes, offset: number, heldAfter: number): void {
    const isDeleted = isDelete(attributes)
    if (!isDeleted && !isRollUp(attributes)) return
    this.#hasAny = true
    dropUpTo(this.#offsets, heldAfter)
    dropUpTo(this.#ends, heldAfter)
    const id = idOf(key, attributes)
    if (isDeleted) {
      // It comes last then, or nothing behind it would be dropped before it.
      this.#offsets.delete(id)
      // No message is there.
      this.#offsets.set(id, offset - 1 / 2)
    }
    if (!isFinalRollUp(attributes)) return
    if (!this.#offsets.has(id)) this.#offsets.set(id, offset)
    const end = Math.max(this.#ends.get(key) ?? 0, Math.min(upToOf(payload), offset - 1))
    this.#ends.delete(key)
    this.#ends.set(key, end)
  }

  /** The last stream of a key is told by what follows this offset: it is in the last roll-up there, or it began later. */
  endedAt(key: string | undefined): number {
    return key === undefined ? 0 : (this.#ends.get(key) ?? 0)
  }

  /** The same messages, as this view has them. */
  seen(view: StreamView, isMatch: Wants): Wants {
    if (view === 'log' || !this.#hasAny) return isMatch
    return (key, timeMs, budget, segment, index = 0) => {
      if (!isMatch(key, timeMs, budget)) return false
      const bytes = segment?.attributesAt(index)
      if (segment === undefined || bytes === undefined) return true
      budget.left -= DECODE_STEPS
      const attributes = decodeAttributes(bytes)
      if (attributes?.stream === undefined) return true
      if (view === 'messages') return !isRollUp(attributes)
      const offset = this.#offsets.get(idOf(key, attributes))
      return isRollUp(attributes) ? segment.offsetAt(index) === offset : offset === undefined
    }
  }
}

/** Of each roll-up, its text. */
export function withTexts(result: ReadResult): ReadResult {
  if (!result.messages.some(({ attributes }) => isRollUp(attributes))) return result
  const messages = result.messages.map((message) =>
    isRollUp(message.attributes) ? { ...message, payload: partsOfRollUp(message.payload).text } : message,
  )
  return { ...result, messages }
}

/** In the order of the offsets, roughly: what stays is for later. */
function dropUpTo(offsets: Map<string, number>, heldAfter: number): void {
  for (const [id, offset] of offsets) {
    if (offset > heldAfter) return
    offsets.delete(id)
  }
}

/** Neither a key nor the id of a stream has a space. */
function idOf(key: string, { stream = '' }: MessageAttributes): string {
  return `${stream.slice(0, stream.indexOf(':'))} ${key}`
}
