import type { GapReason } from 'webmq-client/protocol'
import type { BrokerChange } from '../../features/observing/health/broker-watch.js'

/** Events of a server. */
export interface ServerEvents {
  /** The status of the broker has changed to `up`, `blocked` or `down`. */
  broker: BrokerChange
  /** Messages may be missing for listeners of this node; they are notified too. */
  gap: { readonly reason: GapReason }
}

/** Calls handlers of events, in order, in a later turn of the event loop. So application code never runs in the middle of ours. */
export class Emitter<Events extends object> {
  readonly #handlers: { [E in keyof Events]?: ReadonlySet<(event: Events[E]) => unknown> } = {}
  readonly #onError: (error: unknown, event: keyof Events) => void
  #isClosed = false

  /** @param onError Gets the errors of handlers; the other handlers still run. */
  constructor(onError: (error: unknown, event: keyof Events) => void) {
    this.#onError = onError
  }

  /** Adds a handler and returns a function that removes it; both are no-ops the second time. */
  on<E extends keyof Events>(event: E, handler: (event: Events[E]) => unknown): () => void {
    // Sets are replaced, not changed, because a handler may add or remove handlers during an event.
    this.#handlers[event] = new Set(this.#handlers[event]).add(handler)
    return () => {
      const rest = new Set(this.#handlers[event])
      rest.delete(handler)
      this.#handlers[event] = rest
    }
  }

  /** Calls the handlers that are registered at the end of this turn. */
  emit<E extends keyof Events>(event: E, payload: Events[E]): void {
    if (this.#isClosed || (this.#handlers[event]?.size ?? 0) === 0) return
    setImmediate(() => {
      for (const handler of this.#handlers[event] ?? []) this.#call(event, handler, payload)
    })
  }

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
