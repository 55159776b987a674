import type { ClientMessage } from 'webmq-client/protocol'
import type { HookCalls } from '../hooks/index.js'
import { andThen, type MaybePromise } from '../ports/maybe-promise.js'
import { isRangeAsked } from '../replay/replay.js'
import { assertMayRead } from './handlers/history.js'
import { assertMayListen } from './handlers/listen.js'
import { assertMayUse } from './handlers/presence.js'
import { assertMayPublish } from './handlers/publish.js'
import { assertMayRequest } from './handlers/request.js'
import type { Session } from './session.js'

/** A message that hooks have changed. */
export interface ChangedMessage {
  readonly message: ClientMessage
  readonly isBinary: boolean
}

/**
 * Asks the hooks about a message of a client. Only what its handler would allow is asked about, so that a client cannot
 * make hooks work for what it may not do. The handler checks again what they have changed.
 * @param message Its payload is borrowed for the duration of the call.
 * @returns What is to be handled instead; `undefined` for the message itself.
 * @throws {WebMQError} The errors of the handler's checks, the refusal of a hook, or `E_HOOK_FAILED`.
 */
export function askAbout(
  hooks: HookCalls,
  session: Session,
  message: ClientMessage,
  isBinary: boolean,
): MaybePromise<ChangedMessage | undefined> {
  switch (message.verb) {
    case 'publish': {
      assertMayPublish(session, message)
      const change = hooks.publish(
        session,
        message.key,
        message.payload as Uint8Array,
        isBinary,
        message.ephemeral === true,
      )
      // Most publishes are not changed, and this is the hot path.
      if (change === undefined) return undefined
      return andThen(change, (change) => {
        if (change === undefined) return undefined
        const { key, content } = change
        if (content === undefined) return { message: { ...message, key }, isBinary }
        return { message: { ...message, key, payload: content.payload }, isBinary: content.isBinary }
      })
    }
    case 'request': {
      assertMayRequest(session, message)
      // No log has a request.
      const change = hooks.publish(session, message.key, message.payload as Uint8Array, isBinary, true)
      return andThen(change, (change) => {
        if (change === undefined) return undefined
        const { key, content = { payload: message.payload, isBinary } } = change
        return { message: { ...message, key, payload: content.payload }, isBinary: content.isBinary }
      })
    }
    case 'listen':
      assertMayListen(session, message)
      return unchanged(hooks.listen(session, 'listen', message.pattern, isRangeAsked(message)))
    case 'history':
      assertMayRead(session, message)
      return unchanged(hooks.listen(session, 'history', message.key, true))
    case 'presence': {
      const { key, op } = message
      // Both give something up.
      if (op === 'leave' || op === 'unwatch') return undefined
      assertMayUse(session, message)
      const data = op === 'enter' ? message.data : undefined
      return andThen(hooks.presence(session, op, key, data), (data) =>
        data === undefined ? undefined : { message: { ...message, data } as ClientMessage, isBinary },
      )
    }
    default:
      return undefined
  }
}

function unchanged(asked: MaybePromise<void>): MaybePromise<undefined> {
  return andThen(asked, () => undefined)
}
