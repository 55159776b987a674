import type { WebMQClient } from '../client.js'
import { ofClient } from '../of-client.js'
import { REMOVAL } from '../publishing/payload.js'
import type { KnownKey, KnownTopic, Payload, Topics } from '../topics.js'
import type { PublishOptions, PublishResult } from '../types.js'
import { LiveStateStore } from './store.js'
import type { StateOptions, StateStore } from './types.js'

export type * from './types.js'

/**
 * Follows the last message of each key that a pattern matches: first all of them, at one position, then every change.
 * The server must retain these keys (`--retain`). After a reconnect the store gets what has changed meanwhile, removed
 * keys included. A gap means that it gets the whole state again. It shows the old one until then, as stale.
 * @throws {WebMQError} `E_PATTERN_INVALID`, `E_OPTION_INVALID`. Other errors reject `ready`: `E_UNSUPPORTED` if a key of the
 *   pattern is not retained, `E_FORBIDDEN`, `E_STATE_LIMIT`.
 */
export function state<const K extends string>(
  pattern: KnownTopic<Topics, K>,
  options?: StateOptions,
): StateStore<Payload<Topics, K>>
export function state<T, const K extends string>(
  client: WebMQClient<T>,
  pattern: KnownTopic<T, K>,
  options?: StateOptions,
): StateStore<Payload<T, K>>
export function state(...args: readonly unknown[]): StateStore<unknown> {
  const [client, pattern, options = {}] = ofClient<[pattern: string, options?: StateOptions]>(args)
  return new LiveStateStore(client, pattern, options)
}

/**
 * Removes a key from the state, by a message without a payload. Listeners of the key get `undefined`. Otherwise as
 * `publish`; `null` is a value like any other.
 */
export function remove<const K extends string>(
  key: KnownKey<Topics, K>,
  options?: PublishOptions,
): Promise<PublishResult>
export function remove<T, const K extends string>(
  client: WebMQClient<T>,
  key: KnownKey<T, K>,
  options?: PublishOptions,
): Promise<PublishResult>
export async function remove(...args: readonly unknown[]): Promise<PublishResult> {
  const [client, key, options] = ofClient<[key: string, options?: PublishOptions]>(args)
  return (client as WebMQClient<object>).publish(key as never, REMOVAL as never, options)
}
