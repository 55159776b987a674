import type { Position } from '../../ports/broker.js'
import { DedupeWindow } from '../../ports/dedupe-window.js'
import type { LinkDelivery } from '../remote/link.js'
import { SequenceWindows } from '../remote/sequence-windows.js'

/** What identifies a message: its source, its id, or both. */
export type Identified = Pick<LinkDelivery, 'source' | 'messageId'>

/** Options of {@link DuplicateFilter}; as in {@link ServerOptions}. */
export interface DuplicateFilterOptions {
  readonly dedupeWindowMs: number
  readonly dedupeMaxIds: number
}

/**
 * Finds messages that arrived before: sent again by their node, or published again under their id.
 *
 * `has` and `note` are two steps: a message that nobody on this node wants is not noted. Otherwise ids of unwanted
 * messages would push wanted ones out of the window.
 */
export class DuplicateFilter {
  readonly #sequences = new SequenceWindows()
  readonly #ids: DedupeWindow

  constructor({ dedupeWindowMs, dedupeMaxIds }: DuplicateFilterOptions) {
    this.#ids = new DedupeWindow({ windowMs: dedupeWindowMs, maxIds: dedupeMaxIds })
  }

  /** Whether the message was noted before. */
  has({ source, messageId }: Identified, nowMs: number): boolean {
    if (source !== undefined && this.#sequences.has(source.node, source.sequence)) return true
    return messageId !== undefined && this.#ids.has(messageId, nowMs)
  }

  /** Notes a new message: one that {@link has} is false for. */
  note({ source, messageId }: Identified, nowMs: number, position?: Position): void {
    if (source !== undefined) this.#sequences.note(source.node, source.sequence)
    if (messageId !== undefined) this.#ids.remember(messageId, position, nowMs)
  }

  /** The position that was noted with this id. */
  positionOf(messageId: string): Position | undefined {
    return this.#ids.positionOf(messageId)
  }

  /** As {@link DedupeWindow.positionWithin}. */
  positionWithin(messageId: string, nowMs: number): Position | undefined {
    return this.#ids.positionWithin(messageId, nowMs)
  }
}
