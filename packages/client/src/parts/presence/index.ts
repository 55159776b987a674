import { checkKey, checks } from '../../core/checks.js'
import { type AnyClientOption, clientOf, partOf } from '../../core/of-client.js'
import type { PresenceInput, PresenceOf, Topics } from '../../core/topics/topics.js'
import { LivePresence } from './live-presence.js'
import { Rooms } from './rooms.js'
import type { Presence } from './types.js'

export type * from './types.js'

const roomsOf = partOf((core) => new Rooms(core))

/**
 * Returns a handle for the presence at a key, over all nodes. Each call returns a new handle; the client is present
 * once, whatever the number of handles.
 *
 * The data has the type that `Topic` declares for the key; otherwise `presence<Guest>(key)` names it.
 * @param options `client`: default that of `setup`.
 * @throws {WebMQError} `E_KEY_INVALID`.
 */
export function presence<D extends PresenceInput<T, K> = never, const K extends string = string, T = Topics>(
  key: K,
  options: AnyClientOption<T> = {},
): Presence<PresenceOf<D, T, K>> {
  checks.part?.('presence', options)
  checkKey(key)
  const live: Presence = new LivePresence(roomsOf(clientOf(options.client)), key)
  return live as Presence<PresenceOf<D, T, K>>
}
