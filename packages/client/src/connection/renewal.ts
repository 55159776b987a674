import type { ResolvedOptions } from '../options.js'
import { askForToken } from './token.js'

/** The renewal of the token of a live connection. There is one at a time. */
export class Renewal {
  #running: Promise<void> | undefined
  #settle: ((error?: unknown) => void) | undefined

  /**
   * Gets a token and sends it; joins a renewal that is running. Resolves with {@link Renewal.settle}.
   * @param signal Aborted when the connection is lost.
   */
  start(source: ResolvedOptions['token'], signal: AbortSignal, send: (token: string) => void): Promise<void> {
    this.#running ??= new Promise((resolve, reject) => {
      this.#settle = (error) => {
        this.#running = undefined
        if (error) reject(error)
        else resolve()
      }
      askForToken(source, 'expiring', signal).then(
        (token) => {
          if (signal.aborted) return
          if (token) send(token)
          else this.settle()
        },
        (error) => signal.aborted || this.settle(error),
      )
    })
    return this.#running
  }

  /** The server has answered, or another connection is live. */
  settle(error?: unknown): void {
    this.#settle?.(error)
  }
}
