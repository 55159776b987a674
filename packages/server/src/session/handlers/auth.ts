import { type ErrorCode, WebMQError } from 'webmq-client/protocol'
import type { Identity, TokenVerifier } from '../../identity/index.js'
import type { Handler, HandlerContext } from './handler.js'

/** What `auth` may use. */
export interface AuthContext extends HandlerContext {
  /** Absent when the server asks for no token. */
  readonly verifier: TokenVerifier | undefined
  /**
   * Continues the session with this identity.
   * @throws {WebMQError} `E_FORBIDDEN` when the session belongs to another user, `E_CONNECTION_LIMIT`,
   *   `E_TOKEN_REVOKED`.
   */
  authenticate(identity: Identity): void
  /** Time until the session's token expires; `undefined` when it never does. */
  expiresInMs(): number | undefined
  /** Ends the listens and the presence that the identity no longer allows, and tells the client. */
  revokeListens(): void
  /** Answers a refused token. Ends the session, unless its present token is still good. */
  refuseToken(error: unknown, id: string | undefined): void
}

/** Refusals of a valid token that end the session. */
const ENDING_CODES: ReadonlySet<ErrorCode> = new Set(['E_CONNECTION_LIMIT', 'E_TOKEN_REVOKED'])

/** Accepts a token: the first one, or a new one of the same user before the present one expires. */
export const auth: Handler<'auth', AuthContext> = (context, { id, token }) => {
  const { verifier } = context
  // A client that sends its token before it reads `welcome` does not know yet that none is needed.
  if (verifier === undefined) return context.reply({ verb: 'ok', id, result: {} })
  const accept = (identity: Identity) => {
    if (context.isClosed) return
    try {
      context.authenticate(identity)
    } catch (error) {
      if (!(error instanceof WebMQError) || !ENDING_CODES.has(error.code)) throw error
      return context.refuseToken(error, id)
    }
    const { userId } = identity
    const expiresInMs = context.expiresInMs()
    const result = {
      ...(userId === undefined ? undefined : { userId }),
      ...(expiresInMs === undefined ? undefined : { expiresInMs }),
    }
    context.reply({ verb: 'ok', id, result })
    context.revokeListens()
  }
  return verifier.verify(token).then(accept, (error: unknown) => context.refuseToken(error, id))
}
