import type { Identity } from '../../identity/index.js'
import { isPromise, type MaybePromise } from '../../ports/maybe-promise.js'
import type { Handler } from './handler.js'

/** Takes a token: the first one, or a new one for the same user before the present one expires. */
export const auth: Handler<'auth'> = (context, { id, token }) => {
  const { verifier } = context
  // A client that sends its token without waiting for `welcome` does not know yet that nobody asks for one.
  if (verifier === undefined) return context.reply({ verb: 'ok', id, result: {} })
  const accept = (identity: Identity) => {
    if (context.isClosed) return
    context.authenticate(identity)
    const { userId } = identity
    const expiresInMs = context.expiresInMs()
    const result = {
      ...(userId === undefined ? undefined : { userId }),
      ...(expiresInMs === undefined ? undefined : { expiresInMs }),
    }
    context.reply({ verb: 'ok', id, result })
    context.revokeListens()
  }
  const refuse = (error: unknown) => context.refuseToken(error, id)
  let identity: MaybePromise<Identity>
  try {
    identity = verifier.verify(token)
  } catch (error) {
    return refuse(error)
  }
  return isPromise(identity) ? identity.then(accept, refuse) : accept(identity)
}
