import { constants } from 'node:os'
import { EXIT } from './exit-codes.js'

/** Ctrl-C, what supervisors send, and a terminal that went away. */
const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** A signal that asks the process to stop. */
export type StopSignal = (typeof STOP_SIGNALS)[number]

/** Listens for the signals that stop a process, for good: the first is told to the owner, the second ends the process at once. */
export class StopSignals {
  /** Resolves to the first signal. */
  readonly first: Promise<StopSignal>
  #received = 0
  #tell: (signal: StopSignal) => void = () => undefined

  constructor() {
    this.first = new Promise((resolve) => {
      this.#tell = resolve
    })
    for (const signal of STOP_SIGNALS) process.on(signal, () => this.#receive(signal))
  }

  #receive(signal: StopSignal): void {
    this.#received += 1
    if (this.#received === 1) this.#tell(signal)
    else process.exit(EXIT.SIGNALED + constants.signals[signal])
  }
}
