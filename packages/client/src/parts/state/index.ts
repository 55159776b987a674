import { checks } from '../../core/checks.js'
import { type ClientOption, clientOf } from '../../core/of-client.js'
import { REMOVAL } from '../../core/publishing/payload.js'
import type { KnownKey, KnownTopic, Payload, Topics } from '../../core/topics/topics.js'
import type { PublishOptions, PublishResult } from '../../core/types.js'
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
export function state<const K extends string, T = Topics>(
  pattern: KnownTopic<T, K>,
  { client, ...options }: StateOptions & ClientOption<T> = {},
): StateStore<Payload<T, K>> {
  checks.part?.('state', options)
  return new LiveStateStore(client, pattern, options)
}

/**
 * Removes a key from the state, by a message without a payload. Listeners of the key get `undefined`. Otherwise as
 * `publish`; `null` is a value like any other.
 */
export async function remove<const K extends string, T = Topics>(
  key: KnownKey<T, K>,
  { client, ...options }: PublishOptions & ClientOption<T> = {},
): Promise<PublishResult> {
  return clientOf(client).publish(key as string, REMOVAL, options)
}
