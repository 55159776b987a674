import { type ErrorCode, WebMQError } from 'webmq-client/protocol'
import { HookRefusal } from '../../hooks/index.js'
import type { Identity } from '../../identity/index.js'
import { refuseToken } from '../refuse-token.js'
import { revokeListens } from '../revoke-listens.js'
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
