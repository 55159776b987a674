import type { JsMsg } from '@nats-io/jetstream'
import type { Position } from '../../ports/broker.js'
import type { LastSeen } from './last-seen.js'
import type { LogState, LogStream } from './log-stream.js'

/** What a {@link GenerationGuard} works with. */
export interface GenerationGuardContext {
  readonly stream: LogStream
  readonly lastSeen: LastSeen
  /** Tells all nodes that follow the stream that this generation has begun. */
  readonly announce: (generation: number) => void
}

/** Where to follow a stream from. */
export interface LogStart {
  /** Nothing after this position was lost; `undefined` when there is none, or when the stream no longer has all of it. */
  readonly after: Position | undefined
  /** The first message to ask for is the one behind this sequence. */
  readonly sequence: number
  /** The first message is one that this node has seen, to compare it. */
  readonly isCompared: boolean
}

/** The place in the log is no longer what it was; the next try finds another epoch. */
class LostEnd extends Error {
  constructor() {
    super('the log has lost its end, and begins anew')
  }
}

/**
 * Finds out when a stream has lost its end: a server that comes back without its newest messages gives their places to others. Then
 * it begins another generation, and every node takes what is left for another log.
 */
export class GenerationGuard {
  readonly #context: GenerationGuardContext

  constructor(context: GenerationGuardContext) {
    this.#context = context
  }

  /**
   * Where to go on from a position. The last message that this node has seen comes once more, if the stream still has it.
   * @throws {Error} When the stream ends before that position: another generation has begun.
   */
  async startAfter(position: Position | undefined, state: LogState): Promise<LogStart> {
    const { lastSeen } = this.#context
    if (position?.epoch !== state.epoch) return { after: undefined, sequence: 0, isCompared: false }
    const isSeen = lastSeen.knows(position)
    const sequence = isSeen ? lastSeen.sequence : position.offset
    if (state.lastSequence < sequence) throw await this.end(state)
    if (state.firstSequence > sequence + 1) return { after: undefined, sequence, isCompared: false }
    const isCompared = isSeen && state.firstSequence <= sequence && !state.deleted.has(sequence)
    return { after: position, sequence: isCompared ? sequence - 1 : sequence, isCompared }
  }

  /** Whether the message that stands where this node has seen one is that one. */
  isSame(message: JsMsg): boolean {
    return this.#context.lastSeen.is(message)
  }

  /** Begins another generation; resolves with the reason to give the link up. */
  async end({ generation }: LogState): Promise<Error> {
    await this.#context.stream.beginGeneration(generation + 1)
    this.#context.announce(generation + 1)
    return new LostEnd()
  }
}
