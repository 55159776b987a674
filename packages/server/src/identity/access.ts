import { type ErrorCode, refusalOf, WebMQError } from 'webmq-client/protocol'
import { isReserved } from '../ports/reserved-keys.js'
import type { Actor } from './actor.js'
import { mayEnter, mayListen, mayPublish } from './grants.js'

// The grants of every door. Keys that begin with $ belong to the servers: nobody else publishes, listens or is present there.

type Asker = Pick<Actor, 'door' | 'identity'>

/** Whether an actor may listen to a pattern. Whoever may listen to a key may read its history and see who is there. */
export function isListener({ identity }: Pick<Actor, 'identity'>, pattern: string): boolean {
  return identity !== undefined && !isReserved(pattern) && mayListen(identity, pattern)
}

/** Whether an actor may be present at a key. */
export function isMember({ identity }: Pick<Actor, 'identity'>, key: string): boolean {
  return identity !== undefined && !isReserved(key) && mayEnter(identity, key)
}

/** @throws {WebMQError} `E_FORBIDDEN`; `E_KEY_INVALID` for a key of the servers, without a session. */
export function assertMayListen(actor: Asker, pattern: string): void {
  if (!isListener(actor, pattern)) throw refusal(actor, 'listen', pattern)
}

/** @throws {WebMQError} As {@link assertMayListen}. */
export function assertMayEnter(actor: Asker, key: string): void {
  if (!isMember(actor, key)) throw refusal(actor, 'presence', key)
}

/** @throws {WebMQError} As {@link assertMayListen}. */
export function assertMayPublish(actor: Asker, key: string): void {
  const { identity } = actor
  if (identity === undefined || isReserved(key) || !mayPublish(identity, key)) throw refusal(actor, 'publish', key)
}

function refusal({ door }: Asker, action: string, subject: string): WebMQError {
  const hasSession = door === 'websocket' || door === 'sse'
  if (hasSession || !isReserved(subject)) return refusalOf('E_FORBIDDEN', { detail: `${action} ${subject}` })
  const code: ErrorCode = 'E_KEY_INVALID'
  const detail = 'keys that begin with $ are reserved for servers'
  // A program wants to know which of its lines was wrong.
  return door === 'process' ? new WebMQError(code, { detail }) : refusalOf(code, { detail })
}
