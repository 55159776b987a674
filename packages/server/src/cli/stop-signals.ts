import { constants } from 'node:os'
import { EXIT } from './exit-codes.js'

/** Ctrl-C, the signal of supervisors, and a closed terminal. */
const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** A signal that asks the process to stop. */
export type StopSignal = (typeof STOP_SIGNALS)[number]

/** Listens for stop signals for the rest of the process: `first` resolves with the first one, the second ends the process at once. */
export class StopSignals {
  /** Resolves to the first signal. */
  readonly first: Promise<StopSignal>
  #received = 0
  #resolve: (signal: StopSignal) => void = () => undefined

  constructor() {
    this.first = new Promise((resolve) => {
      this.#resolve = resolve
    })
    for (const signal of STOP_SIGNALS) process.on(signal, () => this.#receive(signal))
  }

  #receive(signal: StopSignal): void {
    this.#received += 1
    if (this.#received === 1) this.#resolve(signal)
    else process.exit(EXIT.SIGNALED + constants.signals[signal])
  }
}
