import { decodeAttributes, type MessageAttributes } from '../../ports/attributes.js'
import type { ReadResult } from '../../ports/broker.js'
import { isFinalRollUp, isRollUp, partsOfRollUp, type StreamView } from '../../ports/roll-up.js'
import type { Wants } from './segmented-log.js'

/** Steps to decode the place of a message in its stream. */
const DECODE_STEPS = 8

/** The streams of a log that have ended and have a roll-up there, which stands for their messages. */
export class RolledUp {
  /** Offsets of the roll-ups, in their order, by stream and key. A stream has one; of more, the first counts. */
  readonly #offsets = new Map<string, number>()
  #hasAny = false

  /** @param heldAfter The log has dropped what is before. */
  note(key: string, attributes: MessageAttributes, offset: number, heldAfter: number): void {
    if (!isRollUp(attributes)) return
    this.#hasAny = true
    for (const [id, dropped] of this.#offsets) {
      if (dropped > heldAfter) break
      this.#offsets.delete(id)
    }
    const id = idOf(key, attributes)
    if (isFinalRollUp(attributes) && !this.#offsets.has(id)) this.#offsets.set(id, offset)
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

/** Neither a key nor the id of a stream has a space. */
function idOf(key: string, { stream = '' }: MessageAttributes): string {
  return `${stream.slice(0, stream.indexOf(':'))} ${key}`
}
