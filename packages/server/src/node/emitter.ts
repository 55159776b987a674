/** Handlers by event. They run after the turn that emitted, in order: code of the application never runs in the middle of ours. */
export class Emitter<Events extends object> {
  readonly #handlers: { [E in keyof Events]?: ReadonlySet<(event: Events[E]) => unknown> } = {}
  readonly #onError: (error: unknown, event: keyof Events) => void
  #isClosed = false

  /** @param onError Told what a handler throws, or rejects with; the others still run. */
  constructor(onError: (error: unknown, event: keyof Events) => void) {
    this.#onError = onError
  }

  /** Adds a handler and returns what removes it; both are no-ops the second time. */
  on<E extends keyof Events>(event: E, handler: (event: Events[E]) => unknown): () => void {
    // Sets are replaced, not changed: a handler may add or remove handlers while an event is being emitted.
    this.#handlers[event] = new Set(this.#handlers[event]).add(handler)
    return () => {
      const rest = new Set(this.#handlers[event])
      rest.delete(handler)
      this.#handlers[event] = rest
    }
  }

  /** Calls the handlers that are there when the turn is over. */
  emit<E extends keyof Events>(event: E, payload: Events[E]): void {
    if (this.#isClosed || (this.#handlers[event]?.size ?? 0) === 0) return
    setImmediate(() => {
      for (const handler of this.#handlers[event] ?? []) this.#call(event, handler, payload)
    })
  }

  /** Nothing is emitted any more. */
  close(): void {
    this.#isClosed = true
  }

  #call<E extends keyof Events>(event: E, handler: (event: Events[E]) => unknown, payload: Events[E]): void {
    try {
      const result = handler(payload)
      if (result instanceof Promise) result.catch((error: unknown) => this.#onError(error, event))
    } catch (error) {
      this.#onError(error, event)
    }
  }
}
