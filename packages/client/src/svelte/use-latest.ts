import type { Readable } from 'svelte/store'
import { type Latest, type LatestOptions, latestStore } from '../stores/latest.js'
import type { KnownTopic, Payload, Topics } from '../topics.js'
import { type ClientOption, givenClient } from './client.js'
import { type MaybeReadable, readable } from './readable.js'

/** The newest message of each key of `pattern`; none while it is `null`. It changes at most once per frame. */
export function useLatest<const K extends string>(
  pattern: MaybeReadable<KnownTopic<Topics, K> | null>,
  { client: given, ...options }: LatestOptions & ClientOption = {},
): Readable<Latest<Payload<Topics, K>>> {
  const client = givenClient(given)
  const make = (value: string | null) => latestStore(client, value, options)
  return readable(pattern, make) as Readable<Latest<Payload<Topics, K>>>
}
