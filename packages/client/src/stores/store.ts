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

/** A store that begins empty. */
export interface LoadedStore<S> extends Store<S> {
  /** Opens the store, and resolves when it shows something else than `initial`. The same promise until then. */
  loaded(): Promise<void>
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
): LoadedStore<S> {
  const subscribe = (onChange: () => void) => {
    const [live, release] = acquire(scope, name, () => new Live(initial, open), graceMs)
    const listener = () => onChange()
    live.listeners.add(listener)
    return () => {
      live.listeners.delete(listener)
      release()
    }
  }
  return {
    initial,
    subscribe,
    getSnapshot: () => (find(scope, name) as Live<S> | undefined)?.snapshot ?? initial,
    loaded() {
      const [{ promise }, release] = acquire(scope, `${name} loaded`, () => new Loading(subscribe), graceMs)
      void promise.then(release)
      return promise
    },
  }
}

/** Uses a store until its first change. */
class Loading implements Resource {
  #end: () => void = () => undefined
  readonly promise: Promise<void>

  constructor(subscribe: Store<unknown>['subscribe']) {
    this.promise = new Promise((resolve) => {
      this.#end = subscribe(() => {
        this.#end()
        resolve()
      })
    })
  }

  close(): void {
    // It has ended itself: its users release it when it has resolved.
  }
}

/** A store that shows one value forever: that of a pattern that is `null`. */
export function constantStore<S>(initial: S): LoadedStore<S> {
  return {
    initial,
    subscribe: () => () => undefined,
    getSnapshot: () => initial,
    loaded: () => Promise.resolve(),
  }
}
