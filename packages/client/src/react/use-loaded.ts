import * as React from 'react'
import type { LoadedStore } from '../stores/store.js'

const never = () => () => undefined

/** As React marks a promise that it knows to be resolved. */
const SHOWN = /* @__PURE__ */ Object.assign(/* @__PURE__ */ Promise.resolve(), {
  status: 'fulfilled',
  value: undefined,
})

/** Suspends the component until the store shows something, if `isWanted`. */
export function useLoaded<S>(store: LoadedStore<S>, snapshot: S, isWanted = false): void {
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
  if (React.use) React.use(isEmpty ? store.loaded() : SHOWN)
  else if (isEmpty) throw store.loaded()
}
