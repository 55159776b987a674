export interface TurnContext {
  onBegin(): void
  onEnd(): void
}

/**
 * Lets one tab at a time send: the one that holds a Web Lock. It gives the lock back when it has no connection, or its page
 * goes away or sleeps. Without Web Locks it is always this tab's turn: the ids alone keep second copies away.
 */
export class Turn {
  readonly #name: string
  readonly #locks: Pick<LockManager, 'request'> | undefined
  readonly #context: TurnContext
  readonly #page = new AbortController()
  #isConnected = false
  /** Ends the wait for the lock, or its possession. */
  #wanted: AbortController | undefined

  constructor(name: string, locks: Pick<LockManager, 'request'> | undefined, context: TurnContext) {
    this.#name = name
    this.#locks = locks
    this.#context = context
    const { signal } = this.#page
    const sleep = () => this.#giveBack()
    const wake = () => this.#isConnected && this.want()
    globalThis.addEventListener?.('pagehide', sleep, { signal })
    globalThis.addEventListener?.('pageshow', wake, { signal })
    globalThis.document?.addEventListener('freeze', sleep, { signal })
    globalThis.document?.addEventListener('resume', wake, { signal })
  }

  /** This tab has a connection: it sends when the others do not. */
  want(): void {
    this.#isConnected = true
    if (this.#wanted || this.#page.signal.aborted) return
    const wanted = new AbortController()
    this.#wanted = wanted
    if (!this.#locks) {
      this.#context.onBegin()
      return
    }
    this.#locks
      .request(this.#name, { signal: wanted.signal }, () => {
        if (wanted.signal.aborted) return undefined
        this.#context.onBegin()
        return new Promise<void>((resolve) => wanted.signal.addEventListener('abort', () => resolve()))
      })
      // The only rejection is that of the signal.
      .catch(() => undefined)
  }

  /** This tab has no connection: another one may send. */
  end(): void {
    this.#isConnected = false
    this.#giveBack()
  }

  close(): void {
    this.end()
    this.#page.abort()
  }

  #giveBack(): void {
    if (!this.#wanted) return
    this.#wanted.abort()
    this.#wanted = undefined
    this.#context.onEnd()
  }
}
