import { refusalOf, WebMQError } from 'webmq-client/protocol'
import { isReserved } from '../ports/reserved-keys.js'
import type { Actor } from './actor.js'
import { mayListen } from './grants.js'

/**
 * Whoever may listen to a key may read its history and see who is there.
 * @throws {WebMQError} `E_KEY_INVALID` for a key of the servers, `E_FORBIDDEN`
 */
export function assertMayListen({ identity }: Pick<Actor, 'identity'>, key: string): void {
  if (isReserved(key)) {
    throw new WebMQError('E_KEY_INVALID', { detail: 'keys that begin with $ are reserved for servers' })
  }
  if (identity === undefined || !mayListen(identity, key)) throw refusalOf('E_FORBIDDEN', { detail: `listen ${key}` })
}
