import { closeCodeOf, type ErrorCode, WebMQError } from 'webmq-client/protocol'
import { HookRefusal } from '../../base/hook-refusal.js'
import { isListener } from '../../identity/access.js'
import type { Identity } from '../../identity/index.js'
import type { Session } from '../session.js'
import type { Handler } from './handler.js'

/** Refusals of a valid token that end the session. */
const ENDING_CODES: ReadonlySet<ErrorCode> = new Set(['E_CONNECTION_LIMIT', 'E_HOOK_FAILED', 'E_TOKEN_REVOKED'])

/** Accepts a token: the first one, or a new one of the same user before the present one expires. */
export const auth: Handler<'auth'> = (session, { verifier }, { id, token }) => {
  // A client that sends its token before it reads `welcome` does not know yet that none is needed.
  if (verifier === undefined) return session.reply({ verb: 'ok', id, result: {} })
  const accept = async (identity: Identity) => {
    if (session.isClosed) return
    try {
      await session.admit(identity)
    } catch (error) {
      if (!isOfToken(error)) throw error
      return refuseToken(session, error, id)
    }
    if (session.isClosed) return
    const { userId } = session
    const expiresInMs = session.expiresInMs()
    const result = {
      ...(userId === undefined ? undefined : { userId }),
      ...(expiresInMs === undefined ? undefined : { expiresInMs }),
      ...(identity.limits === undefined ? undefined : { limits: identity.limits }),
    }
    session.reply({ verb: 'ok', id, result })
    revokeListens(session)
  }
  return verifier.verify(token).then(accept, (error: unknown) => refuseToken(session, error, id))
}

/** Whether the error says something about the token, or the connection, rather than about this message. */
function isOfToken(error: unknown): boolean {
  if (error instanceof HookRefusal) return true
  return error instanceof WebMQError && ENDING_CODES.has(error.code)
}

/** Ends what the session's new identity does not allow, and tells the client. */
function revokeListens(session: Session): void {
  const { features, observer } = session.services
  const hasListens = session.patterns().length > 0
  for (const pattern of hasListens ? session.listens.revoke((pattern) => isListener(session, pattern)) : []) {
    observer?.unlistened?.(session, pattern)
    tellRevoked(session, `listen ${pattern}`, { pattern })
  }
  for (const feature of features) feature.revoke?.(session)
}

/** Tells a client that something has ended, because its new token does not grant it. */
export function tellRevoked(
  session: Session,
  what: string,
  names: { readonly pattern: string } | { readonly key: string },
): void {
  const { code, message, retryable, docs } = noLongerGranted(what)
  session.reply({ verb: 'error', code, message, retryable, docs, ...names })
}

export function noLongerGranted(what: string): WebMQError {
  return new WebMQError('E_FORBIDDEN', { detail: `${what}, no longer granted` })
}

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
