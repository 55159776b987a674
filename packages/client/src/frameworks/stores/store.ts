import { onFrame } from './frame.js'
import { acquire, find, type Resource } from './shared.js'

/** A value that changes. It has the shape that `useSyncExternalStore` of React needs. */
export interface Store<S> {
  /** The value before anything is known: what a server renders, and a page that continues from its HTML. */
  readonly initial: S
  /** The same object until it changes. */
  getSnapshot(): S
  /** Calls `onChange` at most once per frame. Returns a function that ends it. */
  subscribe(onChange: () => void): () => void
}

/** What a store shows. */
export interface Source<S> extends Resource {
  read(): S
}

/** A store with users. */
class Live<S> implements Resource {
  readonly listeners = new Set<() => void>()
  readonly #source: Source<S>
  snapshot: S

  constructor(initial: S, open: (changed: () => void) => Source<S>) {
    this.snapshot = initial
    this.#source = open(() => onFrame(this.#show))
  }

  readonly #show = (): void => {
    this.snapshot = this.#source.read()
    for (const listener of [...this.listeners]) listener()
  }

  close(): void {
    this.#source.close()
  }
}

/**
 * Makes a handle of the store with this name. Making it has no effect; the first `subscribe` of any handle opens the
 * source, and all handles show the same snapshot.
 * @param open Begins; it calls `changed` whenever `read` would return something else.
 */
export function sharedStore<S>(
  scope: object,
  name: string,
  initial: S,
  open: (changed: () => void) => Source<S>,
  graceMs?: number,
): Store<S> {
  return {
    initial,
    getSnapshot: () => (find(scope, name) as Live<S> | undefined)?.snapshot ?? initial,
    subscribe(onChange) {
      const [live, release] = acquire(scope, name, () => new Live(initial, open), graceMs)
      const listener = () => onChange()
      live.listeners.add(listener)
      return () => {
        live.listeners.delete(listener)
        release()
      }
    },
  }
}

/** A store that shows one value forever: that of a pattern that is `null`. */
export function constantStore<S>(initial: S): Store<S> {
  return {
    initial,
    subscribe: () => () => undefined,
    getSnapshot: () => initial,
  }
}
