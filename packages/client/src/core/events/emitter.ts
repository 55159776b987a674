import { checks } from '../checks.js'
import { callSafely } from './call-safely.js'

/** The payload of an event and, of an event that has one, that of the time before. */
type EventArguments<P> = readonly [payload: P, previous?: P]

/** Handles an event. */
export type Handler<P> = (payload: P, previous: P) => unknown

/** Handlers by event. If a handler throws, its error is reported and the others still run. */
export class Emitter<Events extends object> {
  readonly #handlers: { [E in keyof Events]?: ReadonlySet<Handler<Events[E]>> } = {}
  readonly #report: (error: unknown, event: keyof Events) => void

  constructor(report: (error: unknown, event: keyof Events) => void) {
    this.#report = report
  }

  /** Adds a handler, and returns a function that removes it. Both do nothing the second time. */
  on<E extends keyof Events>(event: E, handler: Handler<Events[E]>): () => void {
    checks.event?.(event as string)
    // Replaced, not changed: a handler may add or remove handlers during an event.
    this.#handlers[event] = new Set(this.#handlers[event]).add(handler)
    return () => {
      const rest = new Set(this.#handlers[event])
      rest.delete(handler)
      this.#handlers[event] = rest
    }
  }

  /**
   * Calls the handlers in the order in which they were added. Returns whether there were any.
   */
  emit<E extends keyof Events>(event: E, ...args: EventArguments<Events[E]>): boolean {
    const handlers = this.#handlers[event]
    for (const handler of handlers ?? [])
      callSafely(
        () => handler(...(args as [Events[E], Events[E]])),
        (error) => this.#report(error, event),
      )
    return (handlers?.size ?? 0) > 0
  }
}
