import { onMount } from 'svelte'
import type { Readable } from 'svelte/store'
import { enter, type Present, presenceStore } from '../stores/presence.js'
import { type ClientOption, givenClient } from './client.js'
import { type MaybeReadable, readable, whileValue } from './readable.js'

/**
 * Who is present at `key`; nobody while it is `null`. With `me`, a JSON value, this client is present too, while the
 * component is mounted.
 */
export function usePresence<D = unknown>(
  key: MaybeReadable<string | null>,
  me?: MaybeReadable<D>,
  { client: given, graceMs }: ClientOption & { readonly graceMs?: number } = {},
): Readable<Present<D>> {
  const client = givenClient(given)
  const owner = {}
  onMount(() =>
    whileValue(key, (key) =>
      key === null
        ? undefined
        : whileValue(me, (data) => (data === undefined ? undefined : enter(owner, client, key, data, graceMs))),
    ),
  )
  return readable(key, (key) => presenceStore(client, key, graceMs)) as Readable<Present<D>>
}
