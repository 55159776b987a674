import { type MaybeRefOrGetter, type ToRefs, toValue } from 'vue'
import { type Latest, type LatestOptions, latestStore } from '../stores/latest.js'
import type { KnownTopic, Payload, Topics } from '../topics.js'
import { useGivenClient } from './client.js'
import { useSnapshot } from './use-snapshot.js'

/** The newest message of each key of `pattern`; none while it is `null`. It changes at most once per frame. */
export function useLatest<const K extends string>(
  pattern: MaybeRefOrGetter<KnownTopic<Topics, K> | null>,
  options?: LatestOptions,
): ToRefs<Latest<Payload<Topics, K>>> {
  const client = useGivenClient()
  const refs = useSnapshot(() => latestStore(client, toValue(pattern), options))
  return refs as ToRefs<Latest<Payload<Topics, K>>>
}
