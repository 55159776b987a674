import type { ServerMessage } from '../protocol/index.js'
import type { Message } from '../types.js'
import type { ParsedPosition } from './position.js'

/** Receiver of messages from the log. */
export interface ReplayTarget {
  deliver(message: Message<unknown>, position: ParsedPosition | undefined): void
}

/** Messages from the log that follow an `ok`, with nothing in between [P-6.4]. */
interface Replay {
  readonly targets: readonly ReplayTarget[]
  left: number
  done(): void
}

/** Assigns replayed messages to their requests. Starts anew with each connection. */
export class Replays {
  #replay: Replay | undefined

  /** The messages that follow this answer go to these targets; `done` is called after the last. */
  expect(
    { replayed = 0 }: Extract<ServerMessage, { verb: 'ok' }>,
    targets: readonly ReplayTarget[],
    done: () => void,
  ): void {
    if (replayed > 0) this.#replay = { targets, left: replayed, done }
    else done()
  }

  /** Passes a message to its targets. Drops it if the answer came after its request had timed out. */
  take(handOver: (targets: readonly ReplayTarget[]) => void): void {
    const replay = this.#replay
    if (!replay) return
    handOver(replay.targets)
    // A handler may have ended the connection.
    if (--replay.left > 0 || replay !== this.#replay) return
    this.#replay = undefined
    replay.done()
  }

  /** The connection is lost. */
  clear(): void {
    this.#replay = undefined
  }
}
