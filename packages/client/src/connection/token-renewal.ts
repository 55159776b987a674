import type { ResolvedOptions } from '../options.js'
import { backoffMs } from './backoff.js'
import { nowMs } from './clock.js'
import { askForToken } from './token.js'

/** The renewal's access to its connection. */
export interface TokenRenewalContext {
  /** Sends a token on the live connection. */
  send(token: string): void
  onError(error: unknown): void
}

/** Renews the token within a live connection. */
export class TokenRenewal {
  readonly #options: ResolvedOptions
  readonly #context: TokenRenewalContext
  #pending: Promise<void> | undefined
  #settle: ((error?: unknown) => void) | undefined
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(options: ResolvedOptions, context: TokenRenewalContext) {
    this.#options = options
    this.#context = context
  }

  /**
   * Gets a token and sends it; joins a renewal that is running. Resolves when the server has accepted it, on this
   * connection or, if that is lost, the token of the next one.
   * @param signal Aborted when the connection is lost.
   */
  renew(signal: AbortSignal | undefined): Promise<void> {
    this.#pending ??= new Promise((resolve, reject) => {
      this.#settle = (error) => (error ? reject(error) : resolve())
      askForToken(this.#options.token, 'expiring', signal ?? new AbortController().signal)
        .then((token) => {
          if (signal?.aborted) return
          if (token === undefined) this.settle()
          else this.#context.send(token)
        })
        .catch((error: unknown) => signal?.aborted || this.settle(error))
    })
    return this.#pending
  }

  /** The server has answered, a new connection is live, or the client is closed. */
  settle(error?: unknown): void {
    this.#pending = undefined
    this.#settle?.(error)
  }

  /**
   * Renews the token until the server has accepted one. After the expiry the server ends the connection, and the next
   * one gets a new token.
   */
  async renewWithin(inMs: number, signal: AbortSignal | undefined): Promise<void> {
    if (typeof this.#options.token !== 'function') return
    const expiryMs = nowMs() + inMs
    for (let attempt = 0; ; attempt++) {
      try {
        await this.renew(signal)
        return
      } catch (error) {
        if (signal?.aborted) return
        this.#context.onError(error)
      }
      const waitMs = backoffMs(attempt, this.#options)
      if (nowMs() + waitMs >= expiryMs) return
      await new Promise((resolve) => {
        this.#timer = setTimeout(resolve, waitMs)
      })
    }
  }

  /** The connection is lost. */
  down(): void {
    clearTimeout(this.#timer)
  }
}
