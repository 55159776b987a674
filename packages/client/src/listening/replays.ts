import { PositionBase, type ServerMessage } from '../protocol/index.js'
import type { Message } from '../types.js'
import type { ParsedPosition } from './position.js'

/** Whom messages from the log are handed to. */
export interface ReplayTarget {
  deliver(message: Message<unknown>, position: ParsedPosition | undefined): void
}

/** Messages from the log that follow an `ok`, without anything in between [P-6.4]. */
interface Replay {
  readonly targets: readonly ReplayTarget[]
  left: number
  done(): void
}

/** Whose the messages are that come from the log, and what their positions are relative to. Begins anew with each connection. */
export class Replays {
  readonly #positions = new PositionBase()
  #replay: Replay | undefined

  /** The messages that follow this answer go to these; `done` is called after the last. */
  expect(
    { position, replayed = 0 }: Extract<ServerMessage, { verb: 'ok' }>,
    targets: readonly ReplayTarget[],
    done: () => void,
  ): void {
    this.#positions.note(position)
    if (replayed > 0) this.#replay = { targets, left: replayed, done }
    else done()
  }

  /** The full position of a message [P-8.8]. */
  complete(position: string | undefined): string | undefined {
    return this.#positions.complete(position)
  }

  /** Hands a message over to whom it is for: nobody, when its answer was late and nobody waits any more. */
  take(handOver: (targets: readonly ReplayTarget[]) => void): void {
    const replay = this.#replay
    if (!replay) return
    handOver(replay.targets)
    // A handler may have ended the connection.
    if (--replay.left > 0 || replay !== this.#replay) return
    this.#replay = undefined
    replay.done()
  }

  /** The connection is gone. */
  clear(): void {
    this.#replay = undefined
    this.#positions.clear()
  }
}
