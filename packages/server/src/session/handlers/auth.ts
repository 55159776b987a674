import { type ErrorCode, WebMQError } from 'webmq-client/protocol'
import { HookRefusal } from '../../hooks/index.js'
import type { Identity, TokenVerifier } from '../../identity/index.js'
import type { MaybePromise } from '../../ports/maybe-promise.js'
import type { Handler, HandlerContext } from './handler.js'

/** What `auth` may use. */
export interface AuthContext extends HandlerContext {
  /** Absent when the server asks for no token. */
  readonly verifier: TokenVerifier | undefined
  readonly userId: string | undefined
  /**
   * Continues the session with this identity, or with the one that a hook gives instead.
   * @throws {WebMQError} `E_FORBIDDEN` when the session belongs to another user, `E_CONNECTION_LIMIT`,
   *   `E_TOKEN_REVOKED`, and those of the hook.
   */
  admit(identity: Identity): MaybePromise<void>
  /** Time until the session's token expires; `undefined` when it never does. */
  expiresInMs(): number | undefined
  /** Ends the listens and the presence that the identity no longer allows, and tells the client. */
  revokeListens(): void
  /** Answers a refused token. Ends the session, unless its present token is still good. */
  refuseToken(error: unknown, id: string | undefined): void
}

/** Refusals of a valid token that end the session. */
const ENDING_CODES: ReadonlySet<ErrorCode> = new Set(['E_CONNECTION_LIMIT', 'E_HOOK_FAILED', 'E_TOKEN_REVOKED'])

/** Accepts a token: the first one, or a new one of the same user before the present one expires. */
export const auth: Handler<'auth', AuthContext> = (context, { id, token }) => {
  const { verifier } = context
  // A client that sends its token before it reads `welcome` does not know yet that none is needed.
  if (verifier === undefined) return context.reply({ verb: 'ok', id, result: {} })
  const accept = async (identity: Identity) => {
    if (context.isClosed) return
    try {
      await context.admit(identity)
    } catch (error) {
      if (!isOfToken(error)) throw error
      return context.refuseToken(error, id)
    }
    if (context.isClosed) return
    const { userId } = context
    const expiresInMs = context.expiresInMs()
    const result = {
      ...(userId === undefined ? undefined : { userId }),
      ...(expiresInMs === undefined ? undefined : { expiresInMs }),
      ...(identity.limits === undefined ? undefined : { limits: identity.limits }),
    }
    context.reply({ verb: 'ok', id, result })
    context.revokeListens()
  }
  return verifier.verify(token).then(accept, (error: unknown) => context.refuseToken(error, id))
}

/** Whether the error says something about the token, or the connection, rather than about this message. */
function isOfToken(error: unknown): boolean {
  if (error instanceof HookRefusal) return true
  return error instanceof WebMQError && ENDING_CODES.has(error.code)
}
