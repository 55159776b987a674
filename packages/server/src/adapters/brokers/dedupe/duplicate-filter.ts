import type { Position } from '../../../kernel/ports/broker.js'
import { type DedupeOptions, DedupeWindow } from '../../../kernel/ports/dedupe-window.js'
import type { LinkDelivery } from '../remote/link.js'

export type Identified = Pick<LinkDelivery, 'source' | 'messageId'>

/**
 * Finds messages that arrived before: sent again by their node, or published again under their id.
 *
 * `has` and `note` are two steps: a message that nobody on this node wants is not noted. Otherwise ids of unwanted
 * messages would push wanted ones out of the window.
 */
export class DuplicateFilter {
  readonly #sequences = new SequenceWindows()
  readonly ids: DedupeWindow

  constructor(options: DedupeOptions) {
    this.ids = new DedupeWindow(options)
  }

  has({ source, messageId }: Identified, nowMs: number): boolean {
    if (source !== undefined && this.#sequences.has(source.node, source.sequence)) return true
    return messageId !== undefined && this.ids.has(messageId, nowMs)
  }

  /** Notes a new message: one that {@link has} is false for. */
  note({ source, messageId }: Identified, nowMs: number, position?: Position): void {
    if (source !== undefined) this.#sequences.note(source.node, source.sequence)
    if (messageId !== undefined) this.ids.remember(messageId, position, nowMs)
  }
}

/** Most pending messages of one node: a resent message is never further behind the newest one. */
export const MAX_PENDING_MESSAGES = 131_072
/** Known nodes; the oldest is forgotten first. 1,024 nodes take at most 16 MiB. */
const MAX_NODES = 1_024

const WORD_BITS = 32
/** One more, because the window begins and ends within a word. */
const WORD_COUNT = MAX_PENDING_MESSAGES / WORD_BITS + 1

/** The newest messages of one node: one bit per sequence, in a ring. */
class SequenceWindow {
  readonly #words = new Uint32Array(WORD_COUNT)
  #newest = 0

  /** Whether the sequence was noted. A sequence older than the window counts as new: better twice than never. */
  has(sequence: number): boolean {
    if (sequence > this.#newest || sequence <= this.#newest - MAX_PENDING_MESSAGES) return false
    return ((this.#words[wordOf(sequence)] ?? 0) & bitOf(sequence)) !== 0
  }

  note(sequence: number): void {
    if (sequence > this.#newest) this.#advance(sequence)
    else if (sequence <= this.#newest - MAX_PENDING_MESSAGES) return
    const at = wordOf(sequence)
    this.#words[at] = (this.#words[at] ?? 0) | bitOf(sequence)
  }

  /** Clears the words that enter the window. Cost: one step per 32 sequences, mostly none. */
  #advance(sequence: number): void {
    const from = Math.floor(this.#newest / WORD_BITS)
    const to = Math.floor(sequence / WORD_BITS)
    if (to - from >= WORD_COUNT) this.#words.fill(0)
    else for (let word = from + 1; word <= to; word++) this.#words[word % WORD_COUNT] = 0
    this.#newest = sequence
  }
}

function wordOf(sequence: number): number {
  return Math.floor(sequence / WORD_BITS) % WORD_COUNT
}

function bitOf(sequence: number): number {
  return 1 << (sequence % WORD_BITS)
}

export class SequenceWindows {
  readonly #byNode = new Map<string, SequenceWindow>()
  /** Cached: most messages come from the same node as the one before. */
  #lastNode = ''
  #last: SequenceWindow | undefined

  has(node: string, sequence: number): boolean {
    return this.#find(node)?.has(sequence) === true
  }

  note(node: string, sequence: number): void {
    const window = this.#find(node) ?? this.#create(node)
    window.note(sequence)
  }

  #find(node: string): SequenceWindow | undefined {
    if (node !== this.#lastNode) {
      this.#last = this.#byNode.get(node)
      this.#lastNode = node
    }
    return this.#last
  }

  #create(node: string): SequenceWindow {
    const window = new SequenceWindow()
    this.#byNode.set(node, window)
    this.#last = window
    if (this.#byNode.size > MAX_NODES) {
      for (const oldest of this.#byNode.keys()) {
        this.#byNode.delete(oldest)
        break
      }
    }
    return window
  }
}
