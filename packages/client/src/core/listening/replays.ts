import type { ServerMessage } from '../../protocol/messages.js'
import type { Message } from '../types.js'

/** Receiver of messages from the log. */
export interface ReplayTarget {
  /** @param size Length of the payload on the wire. */
  deliver(message: Message<unknown>, size?: number): void
}

/** Messages from the log that follow an `ok`, with nothing in between [P-6.4]. */
export interface Replay {
  readonly targets: readonly ReplayTarget[]
  left: number
  done(): void
}

/** Assigns replayed messages to their requests. Starts anew with each connection. */
export class Replays {
  /** The replay that is arriving; `undefined` also if its answer came after its request had timed out. */
  current: Replay | undefined

  /** The messages that follow this answer go to these targets; `done` is called after the last. */
  expect(
    { replayed = 0 }: Extract<ServerMessage, { verb: 'ok' }>,
    targets: readonly ReplayTarget[],
    done: () => void,
  ): void {
    if (replayed > 0) this.current = { targets, left: replayed, done }
    else done()
  }

  /** A message was passed to the targets of this replay. */
  passed(replay: Replay): void {
    // A handler may have ended the connection.
    if (--replay.left > 0 || replay !== this.current) return
    this.current = undefined
    replay.done()
  }
}
