import type { WebMQClient } from '../client.js'
import { validateKey } from '../protocol/index.js'
import { LivePresence } from './live-presence.js'
import { Rooms } from './rooms.js'
import type { Presence } from './types.js'

export type * from './types.js'

const parts = new WeakMap<object, { readonly rooms: Rooms; readonly report: (error: unknown, key: string) => void }>()

/**
 * Returns a handle for the presence at a key, over all nodes. Each call returns a new handle; the client is present
 * once, whatever the number of handles.
 *
 * @throws {WebMQError} `E_KEY_INVALID`.
 */
export function presence<D = unknown>(client: Pick<WebMQClient, 'add'>, key: string): Presence<D> {
  validateKey(key)
  let part = parts.get(client)
  if (!part) {
    const rooms = new Rooms()
    const core = client.add(rooms)
    rooms.begin(core)
    part = { rooms, report: (error, key) => core.report({ error, key }) }
    parts.set(client, part)
  }
  const { rooms, report } = part
  return new LivePresence(rooms.at(key), (error) => report(error, key)) as Presence<unknown> as Presence<D>
}
