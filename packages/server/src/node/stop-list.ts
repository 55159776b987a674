import type { Logger } from '../base/logger.js'

/** Something that was started. */
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
