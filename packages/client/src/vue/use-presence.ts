import { type MaybeRefOrGetter, type ToRefs, toValue } from 'vue'
import { enter, type Present, presenceStore } from '../stores/presence.js'
import { useGivenClient } from './client.js'
import { useSnapshot, whileMounted } from './use-snapshot.js'

/**
 * Who is present at `key`; nobody while it is `null`. With `me`, a JSON value, this client is present too, while the
 * component is mounted.
 */
export function usePresence<D = unknown>(
  key: MaybeRefOrGetter<string | null>,
  me?: MaybeRefOrGetter<D>,
  { graceMs }: { readonly graceMs?: number } = {},
): ToRefs<Present<D>> {
  const client = useGivenClient()
  const owner = {}
  whileMounted(
    () => [toValue(key), JSON.stringify(toValue(me))] as const,
    ([key, data]) =>
      key === null || data === undefined ? undefined : enter(owner, client, key, JSON.parse(data), graceMs),
  )
  return useSnapshot(() => presenceStore(client, toValue(key), graceMs)) as ToRefs<Present<D>>
}
