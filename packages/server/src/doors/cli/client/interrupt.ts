import { constants } from 'node:os'
import { EXIT } from '../exit-codes.js'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Ends a command that runs until it is stopped. A second signal ends the process at once. */
export class Interrupt implements Disposable {
  /** Aborted by the first signal, and when the reader of the output has closed the pipe, as `head` does. */
  readonly signal: AbortSignal
  readonly #controller = new AbortController()
  readonly #stdout: NodeJS.WriteStream
  readonly #stop = () => this.#controller.abort()
  readonly #receive = (signal: NodeJS.Signals) => {
    if (this.signal.aborted) process.exit(EXIT.SIGNALED + constants.signals[signal])
    this.#stop()
  }

  constructor(stdout: NodeJS.WriteStream) {
    this.signal = this.#controller.signal
    this.#stdout = stdout.on('error', this.#stop)
    for (const signal of SIGNALS) process.on(signal, this.#receive)
  }

  [Symbol.dispose](): void {
    this.#stdout.off('error', this.#stop)
    for (const signal of SIGNALS) process.off(signal, this.#receive)
  }
}
