import * as React from 'react'
import { acquire } from '../stores/shared.js'
import type { Store } from '../stores/store.js'

const never = () => () => undefined

/** As React marks a promise that it knows to be resolved. */
const SHOWN = /* @__PURE__ */ Object.assign(/* @__PURE__ */ Promise.resolve(), {
  status: 'fulfilled',
  value: undefined,
})

/** Time for the rest of what React waits for: a store that is closed meanwhile would load again, and the component wait again. */
const HELD_MS = 10_000

/**
 * Suspends the component until the store shows something, if `isWanted`. A component that has not been mounted has no
 * state of its own, so what it waits for is found by `scope` and `name`.
 */
export function useLoaded<S>(scope: object, name: string, store: Store<S>, snapshot: S, isWanted = false): void {
  // A server renders the initial value. A page that continues from its HTML keeps that rather than show a fallback.
  const isServer = React.useSyncExternalStore(
    never,
    () => false,
    () => true,
  )
  const [isHydrated] = React.useState(isServer)
  if (!isWanted || isHydrated) return
  const isEmpty = snapshot === store.initial
  // React 18 has no `use`; there a component suspends by throwing.
  if (React.use) React.use(isEmpty ? loaded(scope, name, store) : SHOWN)
  else if (isEmpty) throw loaded(scope, name, store)
}

/** Opens the store, and resolves at its first change. The same promise until then. */
function loaded(scope: object, name: string, store: Store<unknown>): Promise<void> {
  const open = () => {
    let resolve: () => void = () => undefined
    const promise = new Promise<void>((done) => {
      resolve = done
    })
    return { promise, close: store.subscribe(() => resolve()) }
  }
  const [{ promise }, release] = acquire(scope, `loaded ${name}`, open, HELD_MS)
  void promise.then(release)
  return promise
}
