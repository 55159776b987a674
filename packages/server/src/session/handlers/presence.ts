import { WebMQError } from 'webmq-client/protocol'
import { andThen } from '../../ports/maybe-promise.js'
import { assertKeyWords, type WordLimits } from '../../ports/word-limits.js'
import type { ConnectionPresence, Presence } from '../../presence/index.js'
import { sendingUnits } from '../work/costs.js'
import type { Handler, HandlerContext } from './handler.js'

/** What `presence` may use. */
export interface PresenceHandlerContext extends HandlerContext {
  readonly presence: Pick<Presence, 'whenComplete' | 'membersJson'>
  /** The members and the watches of this connection. */
  readonly ownPresence: Pick<ConnectionPresence, 'enter' | 'leave' | 'watch' | 'unwatch'>
  /** `undefined` for anonymous clients. */
  readonly userId: string | undefined
  readonly limits: Pick<WordLimits, 'maxWords'>
  mayListen(key: string): boolean
  mayEnter(key: string): boolean
  /** Sends an answer that is already encoded. */
  replyText(text: string): void
}

/** Enters, leaves, and lists the members of a key: once, or with every later change [P-14.1]. */
export const presence: Handler<'presence', PresenceHandlerContext> = (context, message) => {
  const { id, key, op } = message
  assertKeyWords(key, context.limits)
  const { ownPresence } = context
  switch (op) {
    case 'enter': {
      if (!context.mayEnter(key)) throw new WebMQError('E_FORBIDDEN', { detail: `presence ${key}` })
      const { member, data } = message
      const result = { id: ownPresence.enter(key, context.userId, member, data) }
      context.reply({ verb: 'ok', id, result })
      return
    }
    case 'leave':
      ownPresence.leave(key)
      context.reply({ verb: 'ok', id })
      return
    case 'unwatch':
      ownPresence.unwatch(key)
      context.reply({ verb: 'ok', id })
      return
    case 'get':
      assertMayWatch(context, key)
      return whenComplete(context, () => answer(context, id, key))
    case 'watch':
      assertMayWatch(context, key)
      return whenComplete(context, () => ownPresence.watch(key, () => answer(context, id, key)))
  }
}

/** Who may listen to a key may see who is there. `leave` and `unwatch` give something up, so they need no grant. */
function assertMayWatch(context: PresenceHandlerContext, key: string): void {
  if (!context.mayListen(key)) throw new WebMQError('E_FORBIDDEN', { detail: `listen ${key}` })
}

/** A node that has just begun with presence asks the others first; its clients wait for that, up to a limit. */
function whenComplete(context: PresenceHandlerContext, next: () => void): void | Promise<void> {
  return andThen(context.presence.whenComplete(), () => {
    if (!context.isClosed) next()
  })
}

function answer(context: PresenceHandlerContext, id: string, key: string): void {
  const members = context.presence.membersJson(key)
  context.replyText(`ok ${id}\n{"members":${members}}`)
  context.meter.charge(sendingUnits(members.length))
}
