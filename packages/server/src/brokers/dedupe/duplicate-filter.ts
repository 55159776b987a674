import type { LinkDelivery, LinkSource } from '../remote/link.js'
import { SequenceWindows } from '../remote/sequence-windows.js'
import { DedupeWindow } from './window.js'

/** Options of {@link Heard}; as in {@link ServerOptions}. */
export interface HeardOptions {
  readonly dedupeWindowMs: number
  readonly dedupeMaxIds: number
}

/** Messages that have come to this node: what a node sends again comes once, and so does what was published again under its id. */
export class Heard {
  readonly #sequences = new SequenceWindows()
  readonly #ids: DedupeWindow

  constructor({ dedupeWindowMs, dedupeMaxIds }: HeardOptions) {
    this.#ids = new DedupeWindow({ windowMs: dedupeWindowMs, maxIds: dedupeMaxIds })
  }

  /** Notes a message; whether it has come before. */
  note({ source, messageId }: LinkDelivery, nowMs: number): boolean {
    if (this.noteSource(source)) return true
    if (messageId === undefined) return false
    if (this.#ids.has(messageId, nowMs)) return true
    this.#ids.remember(messageId, undefined, nowMs)
    return false
  }

  /** The same by its source alone. */
  noteSource(source: LinkSource | undefined): boolean {
    return source !== undefined && this.#sequences.note(source.node, source.sequence)
  }
}
