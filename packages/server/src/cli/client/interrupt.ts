import { constants } from 'node:os'
import { EXIT } from '../exit-codes.js'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Ends a command that runs until it is stopped. A second signal ends the process at once. */
export class Interrupt implements Disposable {
  /** Aborted by the first signal. */
  readonly signal: AbortSignal
  readonly #controller = new AbortController()
  readonly #receive = (signal: NodeJS.Signals) => {
    if (this.signal.aborted) process.exit(EXIT.SIGNALED + constants.signals[signal])
    this.#controller.abort()
  }

  constructor() {
    this.signal = this.#controller.signal
    for (const signal of SIGNALS) process.on(signal, this.#receive)
  }

  [Symbol.dispose](): void {
    for (const signal of SIGNALS) process.off(signal, this.#receive)
  }
}
