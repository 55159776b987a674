import { clientOf, type GivenClient } from '../../core/of-client.js'
import type { KnownKey, PayloadInput, Topics } from '../../core/topics/topics.js'
import type { PublishOptions, PublishResult } from '../../core/types.js'
import { publishShown } from './sending.js'

/** Options of all publishes of a component. */
export interface PublisherOptions extends Omit<PublishOptions, 'id' | 'signal'> {
  /** Whether lists show a message at once: as pending, then as confirmed or failed. Default `false`. */
  readonly optimistic?: boolean
}

/** Publishes to one key. */
export type PublishToKey<K extends string, T = Topics> = (
  payload: PayloadInput<T, K>,
  options?: PublishOptions,
) => Promise<PublishResult>

/** Publishes to any key. */
export type PublishToAny<T = Topics> = <const K extends string>(
  key: KnownKey<T, K>,
  payload: PayloadInput<T, K>,
  options?: PublishOptions,
) => Promise<PublishResult>

/** What `usePublish` returns: of a key, or of none. */
export type PublishTo<K extends string, T = Topics> = [K] extends [never] ? PublishToAny<T> : PublishToKey<K, T>

/** Returns a function that publishes to `key`, or to the key that is its first argument. */
export function publisher(
  client: GivenClient,
  key: string | undefined,
  { optimistic, ...options }: PublisherOptions = {},
): (...args: readonly unknown[]) => Promise<PublishResult> {
  return (...args) => {
    const [to, payload, more] = (key === undefined ? args : [key, ...args]) as [string, unknown, PublishOptions?]
    const send = optimistic ? publishShown : publishPlain
    return send(client, to, payload, { ...options, ...more })
  }
}

function publishPlain(client: GivenClient, key: string, payload: unknown, options: PublishOptions) {
  return clientOf(client).publish(key, payload, options)
}
