import type { ClientMessage } from 'webmq-client/protocol'
import type { HookCalls } from '../../features/hooks/index.js'
import { andThen, type MaybePromise } from '../base/maybe-promise.js'
import { assertMayRead } from './handlers/history.js'
import { requestOf } from './handlers/listen.js'
import { assertMayUse } from './handlers/presence.js'
import { assertMayJoin, slotNameOf } from './handlers/queue-group.js'
import { askToListen } from './opening.js'
import type { Session } from './session.js'

/**
 * Asks the hooks about a message of a client that is no publish. Only what its handler would allow is asked about, so that a client cannot
 * make hooks work for what it may not do. The handler checks again what they have changed.
 * @returns What is to be handled instead; `undefined` for the message itself.
 * @throws {WebMQError} The errors of the handler's checks, the refusal of a hook, or `E_HOOK_FAILED`.
 */
export function askAbout(
  hooks: HookCalls,
  session: Session,
  message: ClientMessage,
): MaybePromise<ClientMessage | undefined> {
  switch (message.verb) {
    case 'listen': {
      const name = slotNameOf(message)
      if (name === undefined) return unchanged(askToListen(session, requestOf(message)))
      assertMayJoin(session, session.services, message, name)
      return unchanged(hooks.listen(session, 'listen', message.pattern, false))
    }
    case 'history':
    case 'read':
      assertMayRead(session, session.services, message)
      return unchanged(hooks.listen(session, 'history', message.key, true))
    case 'presence': {
      const { key, op } = message
      // Both give something up.
      if (op === 'leave' || op === 'unwatch') return undefined
      assertMayUse(session, message)
      const data = op === 'enter' ? message.data : undefined
      return andThen(hooks.presence(session, op, key, data), (data) =>
        data === undefined ? undefined : ({ ...message, data } as ClientMessage),
      )
    }
    default:
      return undefined
  }
}

function unchanged(asked: MaybePromise<void>): MaybePromise<undefined> {
  return andThen(asked, () => undefined)
}
