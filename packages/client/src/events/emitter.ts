import { callSafely } from './call-safely.js'

/** Handlers by event. A handler that throws is reported and the others still run. */
export class Emitter<Events extends object> {
  readonly #handlers: { [E in keyof Events]?: ReadonlySet<(event: Events[E]) => unknown> } = {}
  readonly #report: (error: unknown, event: keyof Events) => void

  constructor(report: (error: unknown, event: keyof Events) => void) {
    this.#report = report
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

  /** Calls the handlers in the order they were added; returns whether there were any. */
  emit<E extends keyof Events>(event: E, payload: Events[E]): boolean {
    const handlers = this.#handlers[event]
    for (const handler of handlers ?? [])
      callSafely(
        () => handler(payload),
        (error) => this.#report(error, event),
      )
    return (handlers?.size ?? 0) > 0
  }
}
