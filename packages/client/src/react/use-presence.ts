'use client'
import { useEffect, useMemo } from 'react'
import { enter, type Present, presenceStore } from '../stores/presence.js'
import { useGivenClient } from './client.js'
import { useSnapshot, useStore } from './use-store.js'

/**
 * Who is present at `key`; nobody if it is `null`. With `me`, a JSON value, this client is present too, while the
 * component is mounted.
 */
export function usePresence<D = unknown>(
  key: string | null,
  me?: D,
  options: { readonly graceMs?: number } = {},
): Present<D> {
  const client = useGivenClient()
  const { graceMs } = options
  const owner = useMemo(() => ({ client }), [client])
  // biome-ignore lint/correctness/useExhaustiveDependencies: `me` is compared by what it says
  useEffect(
    () => (key === null || me === undefined ? undefined : enter(owner, owner.client, key, me, graceMs)),
    [owner, key, JSON.stringify(me)],
  )
  return useSnapshot(useStore(key, (client) => presenceStore(client, key, graceMs))) as Present<D>
}
