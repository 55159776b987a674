'use client'
import type { StateSnapshot } from '../state/index.js'
import { type StateTopicOptions, stateStore } from '../stores/state.js'
import type { KnownTopic, Payload, Topics } from '../topics.js'
import { useSnapshot, useStore } from './use-store.js'

/**
 * The last message of each key of `pattern`, which the server must retain; of none if it is `null`. However many
 * messages arrive, the component renders at most once per frame.
 */
export function useStateTopic<const K extends string>(
  pattern: KnownTopic<Topics, K> | null,
  options?: StateTopicOptions,
): StateSnapshot<Payload<Topics, K>> {
  const store = useStore(`${pattern} ${JSON.stringify(options)}`, (client) => stateStore(client, pattern, options))
  return useSnapshot(store) as StateSnapshot<Payload<Topics, K>>
}
