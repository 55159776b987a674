import { type MaybeRefOrGetter, type ToRefs, toValue } from 'vue'
import type { StateSnapshot } from '../state/index.js'
import { type StateTopicOptions, stateStore } from '../stores/state.js'
import type { KnownTopic, Payload, Topics } from '../topics.js'
import { useGivenClient } from './client.js'
import { useSnapshot } from './use-snapshot.js'

/**
 * The last message of each key of `pattern`, which the server must retain; of none while it is `null`. It changes at
 * most once per frame.
 */
export function useStateTopic<const K extends string>(
  pattern: MaybeRefOrGetter<KnownTopic<Topics, K> | null>,
  options?: StateTopicOptions,
): ToRefs<StateSnapshot<Payload<Topics, K>>> {
  const client = useGivenClient()
  const refs = useSnapshot(() => stateStore(client, toValue(pattern), options))
  return refs as ToRefs<StateSnapshot<Payload<Topics, K>>>
}
