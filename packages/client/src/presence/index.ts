import { checkKey } from '../checks.js'
import type { WebMQClient } from '../client.js'
import { ofClient, partOf } from '../of-client.js'
import { LivePresence } from './live-presence.js'
import { Rooms } from './rooms.js'
import type { Presence } from './types.js'

export type * from './types.js'

const roomsOf = partOf((core) => new Rooms(core))

/**
 * Returns a handle for the presence at a key, over all nodes. Each call returns a new handle; the client is present
 * once, whatever the number of handles.
 *
 * @param client Default: that of `setup`.
 * @throws {WebMQError} `E_KEY_INVALID`.
 */
export function presence<D = unknown>(client: Pick<WebMQClient, 'add'>, key: string): Presence<D>
export function presence<D = unknown>(key: string): Presence<D>
export function presence(...args: readonly unknown[]): Presence {
  const [client, key] = ofClient<[key: string]>(args)
  checkKey(key)
  const rooms = roomsOf(client)
  return new LivePresence(rooms.at(key), (error) => rooms.report(error, key))
}
