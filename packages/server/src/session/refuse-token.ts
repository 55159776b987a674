import { closeCodeOf, type ErrorCode } from 'webmq-client/protocol'
import { HookRefusal } from '../hooks/index.js'
import type { Session } from './session.js'

/** Codes of a token that could not be looked at. */
const UNDECIDED_CODES: readonly ErrorCode[] = ['E_INTERNAL', 'E_RATE_LIMIT', 'E_HOOK_FAILED']

/** Answers a refused token. Ends the session, unless its present token is still good. */
export function refuseToken(session: Session, error: unknown, id: string | undefined): void {
  if (session.isClosed) return
  const isNew = session.state === 'authenticating'
  const isTerminal = error instanceof HookRefusal && closeCodeOf(error.code) === undefined
  // Clients act on the answer to `auth` before the close code arrives, and connect again unless they know the code.
  const { code } = session.refuse(error, isTerminal && isNew ? undefined : id)
  session.services.observer?.refused?.(session, session.wasActive ? 'auth' : 'connect', code, undefined)
  if (isTerminal) session.end('E_CONNECTION_REFUSED')
  // A token that could not be looked at says nothing about the one that the session already has.
  else if (isNew || !UNDECIDED_CODES.includes(code)) session.end(code)
}
