import { setTimeout } from 'node:timers/promises'
import { LogRestart } from 'webmq-server/brokers'
import type { Position } from 'webmq-server/ports'
import type { LogState, LogStream } from './log-stream.js'
import type { StreamMessage } from './stream-message.js'

/**
 * The last message of the stream that this node has seen, logged or not. Sequence and time in nanoseconds identify it,
 * so it shows whether the stream still has the same messages.
 */
export class LastSeen {
  #epoch = ''
  sequence = 0
  #time = ''

  note(epoch: string, { sequence, time }: StreamMessage): void {
    this.#epoch = epoch
    this.sequence = sequence
    this.#time = time
  }

  /** Whether it is at this position or after it. */
  knows({ epoch, offset }: Position): boolean {
    return this.#epoch === epoch && this.sequence >= offset
  }

  is({ sequence, time }: StreamMessage): boolean {
    return sequence === this.sequence && time === this.#time
  }
}

/** Time that a node gives others to say that the stream is whole, when it cannot say so itself. */
const MAX_VOUCH_MS = 1_000
const VOUCH_POLL_MS = 50
/** Text of a note in the log: nodes that follow it say that it is whole. */
export const WHO_VOUCHES = 'who vouches'

export interface LogStart {
  /** The stream has everything after this position. `undefined` if it does not, or without a position. */
  readonly after: Position | undefined
  /** The first requested message is the one after this sequence. */
  readonly sequence: number
  /** The first message is one that this node already has, for a comparison. */
  readonly isCompared: boolean
}

/**
 * Detects that a stream has lost its end: a server that restarts without its newest messages reuses their sequences.
 * The guard then begins another generation, which every node takes for another log.
 */
export class GenerationGuard {
  readonly #stream: LogStream
  readonly #lastSeen: LastSeen
  readonly #note: (text: string) => void

  /** @param note Writes a note into the log. */
  constructor(stream: LogStream, lastSeen: LastSeen, note: (text: string) => void) {
    this.#stream = stream
    this.#lastSeen = lastSeen
    this.#note = note
  }

  /**
   * Where to continue after a position. The last message that this node has seen is requested again, if the stream has
   * it.
   * @throws {Error} when the stream ends before that position. Another generation has then begun.
   */
  async startAfter(position: Position | undefined, state: LogState): Promise<LogStart> {
    const lastSeen = this.#lastSeen
    if (position?.epoch !== state.epoch) return { after: undefined, sequence: 0, isCompared: false }
    const isSeen = lastSeen.knows(position)
    const sequence = isSeen ? lastSeen.sequence : position.offset
    if (state.lastSequence < sequence) throw await this.end(state)
    if (state.firstSequence > sequence + 1) return { after: undefined, sequence, isCompared: false }
    const isCompared = isSeen && state.firstSequence <= sequence && !state.deleted.has(sequence)
    return { after: position, sequence: isCompared ? sequence - 1 : sequence, isCompared }
  }

  /**
   * The state of the stream, and where to continue after a position. In a new run of the server, some node must have
   * found what it has seen; otherwise another generation begins, because the end may be lost.
   */
  async open(position: Position | undefined): Promise<{ readonly state: LogState; readonly start: LogStart }> {
    const stream = this.#stream
    for (let leftMs = MAX_VOUCH_MS; ; leftMs -= VOUCH_POLL_MS) {
      const state = await stream.open()
      const start = await this.startAfter(position, state)
      const isVouching = start.after !== undefined
      if (isVouching || !(await stream.isNewRun(state))) return { state, start }
      if (leftMs === MAX_VOUCH_MS) this.#note(WHO_VOUCHES)
      if (leftMs > 0) await setTimeout(VOUCH_POLL_MS)
      else if (await stream.seesRestarts()) await this.end(state)
      else return { state, start }
    }
  }

  /** This node has found what it has seen. */
  async vouch(): Promise<void> {
    const stream = this.#stream
    if (await stream.isNewRun(await stream.state())) await stream.confirmRun()
  }

  /** All links are lost by it. */
  async begin(): Promise<never> {
    const { rules } = this.#stream
    const state = await this.#stream.state()
    throw state.rules === rules ? new LogRestart('another node has begun the log') : await this.end(state, rules)
  }

  /**
   * Begins another generation; resolves to the reason to give up the link.
   * @param rules Marks the log with them; default: its mark stays.
   */
  async end({ generation }: LogState, rules?: string): Promise<Error> {
    await this.#stream.beginGeneration(generation + 1, rules)
    // Tells all nodes.
    this.#note(String(generation + 1))
    return new LogRestart('the log has lost its end, and begins anew')
  }
}
