import { type PublisherOptions, type PublishToAny, type PublishToKey, publisher } from '../stores/publish.js'
import type { KnownKey, Topics } from '../topics.js'
import { type ClientOption, givenClient } from './client.js'

/** A function that publishes to `key` or, without one, to any key. A publish goes on when the component ends. */
export function usePublish<const K extends string>(
  key: KnownKey<Topics, K>,
  options?: PublisherOptions & ClientOption,
): PublishToKey<K>
export function usePublish(key?: undefined, options?: PublisherOptions & ClientOption): PublishToAny
export function usePublish(
  key?: string,
  { client, ...options }: PublisherOptions & ClientOption = {},
): PublishToKey<string> | PublishToAny {
  return publisher(givenClient(client), key, options)
}
