import { useMemo, useSyncExternalStore } from 'react'
import type { GivenClient } from '../../core/of-client.js'
import type { Store } from '../stores/store.js'
import { useGivenClient } from './client.js'

/** The store that `make` returns, which is made again only for another client or `name`. */
export function useStore<S extends Store<unknown>>(
  name: unknown,
  make: (client: GivenClient) => S,
  given: GivenClient,
): S {
  const client = useGivenClient(given)
  // biome-ignore lint/correctness/useExhaustiveDependencies: `name` says everything that `make` depends on
  return useMemo(() => make(client), [client, name])
}

/** What a store shows; its initial value on a server, and while a page continues from the server's HTML. */
export function useSnapshot<S>(store: Store<S>): S
/** What `select` returns of it. */
export function useSnapshot<S, V>(store: Store<S>, select: ((snapshot: S) => V) | undefined): V
export function useSnapshot<S>(
  { subscribe, getSnapshot, initial }: Store<S>,
  select = (snapshot: S): unknown => snapshot,
) {
  return useSyncExternalStore(
    subscribe,
    () => select(getSnapshot()),
    () => select(initial),
  )
}
