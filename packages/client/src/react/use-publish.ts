'use client'
import { useMemo } from 'react'
import { type PublisherOptions, type PublishToAny, type PublishToKey, publisher } from '../stores/publish.js'
import type { KnownKey, Topics } from '../topics.js'
import { useGivenClient } from './client.js'

/**
 * A function that publishes to `key` or, without one, to any key. It stays the same from render to render. A publish
 * goes on when the component ends.
 */
export function usePublish<const K extends string>(
  key: KnownKey<Topics, K>,
  options?: PublisherOptions,
): PublishToKey<K>
export function usePublish(key?: undefined, options?: PublisherOptions): PublishToAny
export function usePublish(key?: string, options?: PublisherOptions): PublishToKey<string> | PublishToAny {
  const client = useGivenClient()
  // biome-ignore lint/correctness/useExhaustiveDependencies: options are compared by what they say
  return useMemo(() => publisher(client, key, options), [client, key, JSON.stringify(options)])
}
