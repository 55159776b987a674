import { type MaybeRefOrGetter, toValue } from 'vue'
import { type PublisherOptions, type PublishToAny, type PublishToKey, publisher } from '../stores/publish.js'
import type { KnownKey, Topics } from '../topics.js'
import { useGivenClient } from './client.js'

/** A function that publishes to `key` or, without one, to any key. A publish goes on when the component ends. */
export function usePublish<const K extends string>(
  key: MaybeRefOrGetter<KnownKey<Topics, K>>,
  options?: PublisherOptions,
): PublishToKey<K>
export function usePublish(key?: undefined, options?: PublisherOptions): PublishToAny
export function usePublish(
  key?: MaybeRefOrGetter<string>,
  options?: PublisherOptions,
): PublishToKey<string> | PublishToAny {
  const client = useGivenClient()
  return (...args: unknown[]) => publisher(client, toValue(key), options)(...args)
}
