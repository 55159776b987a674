import type { Readable } from 'svelte/store'
import type { Store } from '../stores/store.js'

/** A value, or a store of values. */
export type MaybeReadable<V> = V | Readable<V>

/** Calls `begin` with each value, and what it returns before the next one and at the end. */
export function whileValue<V>(source: MaybeReadable<V>, begin: (value: V) => (() => void) | undefined): () => void {
  let end: (() => void) | undefined
  const next = (value: V) => {
    end?.()
    end = begin(value)
  }
  const unsubscribe = isReadable(source) ? source.subscribe(next) : next(source)
  return () => {
    unsubscribe?.()
    end?.()
  }
}

/** A store of Svelte. On a server it has the initial value, and nothing is opened. */
export function readable<V, S>(source: MaybeReadable<V>, make: (value: V) => Store<S>): Readable<S> {
  return {
    subscribe: (run) =>
      whileValue(source, (value) => {
        const store = make(value)
        if (typeof document === 'undefined') {
          run(store.initial)
          return undefined
        }
        const show = () => run(store.getSnapshot())
        show()
        return store.subscribe(show)
      }),
  }
}

export function isReadable<V>(source: MaybeReadable<V>): source is Readable<V> {
  return typeof (source as Partial<Readable<V>> | null)?.subscribe === 'function'
}
