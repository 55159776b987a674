'use client'
import { type Latest, type LatestOptions, latestStore } from '../stores/latest.js'
import type { KnownTopic, Payload, Topics } from '../topics.js'
import { useSnapshot, useStore } from './use-store.js'

/**
 * The newest message of each key of `pattern`; none if it is `null`. However many messages arrive, the component
 * renders at most once per frame.
 */
export function useLatest<const K extends string>(
  pattern: KnownTopic<Topics, K> | null,
  options?: LatestOptions,
): Latest<Payload<Topics, K>> {
  const store = useStore(`${pattern} ${JSON.stringify(options)}`, (client) => latestStore(client, pattern, options))
  return useSnapshot(store) as Latest<Payload<Topics, K>>
}
