import { WebMQError } from 'webmq-client/protocol'
import { ANONYMOUS, mayListen, mayPublish } from '../../../identity/index.js'
import { isReserved } from '../../../ports/reserved-keys.js'
import type { Caller } from '../../caller.js'

/** @throws {WebMQError} `E_KEY_INVALID` for a key of the servers, `E_FORBIDDEN` */
export function assertMayPublish(caller: Caller, key: string): void {
  assertOwnKey(key)
  if (caller.kind === 'operator' || caller.identity === ANONYMOUS || mayPublish(caller.identity, key)) return
  throw new WebMQError('E_FORBIDDEN', { detail: `publish ${key}` })
}

/**
 * Whoever may listen to a key may read its history and see who is there.
 * @throws {WebMQError} `E_KEY_INVALID` for a key of the servers, `E_FORBIDDEN`
 */
export function assertMayListen(caller: Caller, key: string): void {
  assertOwnKey(key)
  if (caller.kind === 'operator' || caller.identity === ANONYMOUS || mayListen(caller.identity, key)) return
  throw new WebMQError('E_FORBIDDEN', { detail: `listen ${key}` })
}

function assertOwnKey(key: string): void {
  if (isReserved(key)) {
    throw new WebMQError('E_KEY_INVALID', { detail: 'keys that begin with $ are reserved for servers' })
  }
}
