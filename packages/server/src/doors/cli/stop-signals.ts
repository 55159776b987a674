import { closeSync, openSync } from 'node:fs'
import { constants } from 'node:os'
import { deferred } from '../../kernel/base/deferred.js'
import { EXIT } from './exit-codes.js'

/** Ctrl-C, the signal of supervisors, and a closed terminal. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

export type StopSignal = (typeof SIGNALS)[number]

/**
 * Listens for signals for the rest of the process. SIGTERM and SIGINT stop: `first` resolves with the first one, the second
 * ends the process at once. SIGHUP asks for the options to be read again. Only when the terminal of the process was closed,
 * it stops too: nobody would see a server that goes on.
 */
export class StopSignals {
  /** Called for a SIGHUP that does not stop. */
  onReload: () => void = () => undefined
  readonly #hadTerminal = hasTerminal()
  readonly #stop = deferred<StopSignal>()
  /** Resolves to the first signal that stops. */
  readonly first = this.#stop.promise
  #isStopping = false

  constructor() {
    for (const signal of SIGNALS) process.on(signal, () => this.#receive(signal))
  }

  #receive(signal: StopSignal): void {
    if (signal === 'SIGHUP' && !this.#isTerminalClosed()) {
      this.onReload()
      return
    }
    if (this.#isStopping) process.exit(EXIT.SIGNALED + constants.signals[signal])
    this.#isStopping = true
    this.#stop.resolve(signal)
  }

  /** On Windows the signal always means that. */
  #isTerminalClosed(): boolean {
    return process.platform === 'win32' || (this.#hadTerminal && !hasTerminal())
  }
}

/** Whether the process has a controlling terminal that is open. A service has none. */
function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return true
  } catch {
    return false
  }
}
