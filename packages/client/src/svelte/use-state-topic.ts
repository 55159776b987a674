import type { Readable } from 'svelte/store'
import type { StateSnapshot } from '../state/index.js'
import { type StateTopicOptions, stateStore } from '../stores/state.js'
import type { KnownTopic, Payload, Topics } from '../topics.js'
import { type ClientOption, givenClient } from './client.js'
import { type MaybeReadable, readable } from './readable.js'

/**
 * The last message of each key of `pattern`, which the server must retain; of none while it is `null`. It changes at
 * most once per frame.
 */
export function useStateTopic<const K extends string>(
  pattern: MaybeReadable<KnownTopic<Topics, K> | null>,
  { client: given, ...options }: StateTopicOptions & ClientOption = {},
): Readable<StateSnapshot<Payload<Topics, K>>> {
  const client = givenClient(given)
  const make = (value: string | null) => stateStore(client, value, options)
  return readable(pattern, make) as Readable<StateSnapshot<Payload<Topics, K>>>
}
