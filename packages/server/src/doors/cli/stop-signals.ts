import { deferred } from '../../kernel/base/deferred.js'
import { endWith, isTerminalClosed, type StopSignal, takeSignals } from './early-signals.js'

/**
 * Listens for signals for the rest of the process, those before included. SIGTERM and SIGINT stop: `first` resolves with the
 * first one, the second ends the process at once. SIGHUP asks for the options to be read again. Only when the terminal of
 * the process was closed, it stops too: nobody would see a server that goes on.
 */
export class StopSignals {
  readonly #stop = deferred<StopSignal>()
  /** Resolves to the first signal that stops. */
  readonly first = this.#stop.promise
  isStopping = false
  #reload: (() => void) | undefined
  #isReloadDue = false

  constructor() {
    takeSignals((signal) => this.#receive(signal))
  }

  /** Called for a SIGHUP that does not stop, and at once if there was one. */
  set onReload(reload: () => void) {
    this.#reload = reload
    if (this.#isReloadDue) reload()
  }

  #receive(signal: StopSignal): void {
    if (signal === 'SIGHUP' && !isTerminalClosed()) {
      this.#isReloadDue = true
      this.#reload?.()
      return
    }
    if (this.isStopping) endWith(signal)
    this.isStopping = true
    this.#stop.resolve(signal)
  }
}
