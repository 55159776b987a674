import type { Logger } from '../base/logger.js'

export interface Stoppable {
  /** For the log. */
  readonly name: string
  stop(): unknown
}

/** What was started, in order. It stops in the reverse order, and a part that fails keeps no other from stopping. */
export class StopList {
  readonly #logger: Pick<Logger, 'error'>
  readonly #steps: (readonly Stoppable[])[] = []

  constructor(logger: Pick<Logger, 'error'>) {
    this.#logger = logger
  }

  /** Adds a part, or several that stop at the same time. */
  add(...parts: readonly Stoppable[]): void {
    this.#steps.push(parts)
  }

  /** Stops everything that was added, also what is added meanwhile. Never rejects; failures are logged with the part's name. */
  async stop(): Promise<void> {
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) {
      await Promise.all(step.map((part) => this.#stop(part)))
    }
  }

  async #stop(part: Stoppable): Promise<void> {
    try {
      await part.stop()
    } catch (err) {
      this.#logger.error({ err, part: part.name }, 'a part of the server could not be stopped')
    }
  }
}

/**
 * How long the parts of a stop may take, beyond the time over which connections are closed. One after the other they stay
 * within {@link STOP_GRACE_MS}, whatever does not answer.
 */

/** After this time, the command line ends a process whose stop hangs because of a bug. */
export const STOP_GRACE_MS = 2_000
/** For a node: its connections, then its broker. */
export const NODE_STOP_MS = 1_500
/** Of that, so much is for the broker alone, after the last connection. */
export const BROKER_SHARE_MS = 500
/** Of that, so much is for the ends of streams that the process writes. */
export const STREAMS_SHARE_MS = 500
/** Of the broker's share: time to notice that the broker does not end within its own limit. */
export const BROKER_GRACE_MS = 200
/** A timer of Node fires up to 1 ms early, and a broker's stop has several: who ends that late ended by a timer. */
export const TIMERS_EARLY_MS = 10
/** For lines of the audit log and notices of the webhook about the connections that the stop has closed. */
export const NOTICES_STOP_MS = 400
