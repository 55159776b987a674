import { checkKey } from '../checks.js'
import { clientOf, type GivenClient, partOf } from '../of-client.js'
import { LivePresence } from './live-presence.js'
import { Rooms } from './rooms.js'
import type { Presence } from './types.js'

export type * from './types.js'

const roomsOf = partOf((core) => new Rooms(core))

/**
 * Returns a handle for the presence at a key, over all nodes. Each call returns a new handle; the client is present
 * once, whatever the number of handles.
 *
 * @param options `client`: default that of `setup`.
 * @throws {WebMQError} `E_KEY_INVALID`.
 */
export function presence<D = unknown>(key: string, { client }: { readonly client?: GivenClient } = {}): Presence<D> {
  checkKey(key)
  const rooms = roomsOf(clientOf(client))
  const live: Presence = new LivePresence(rooms.at(key), (error) => rooms.report(error, key))
  return live as Presence<D>
}
