import { andThen } from '../../base/maybe-promise.js'
import { assertMayEnter, assertMayListen } from '../../identity/access.js'
import { assertKeyWords } from '../../ports/word-limits.js'
import type { SessionServices } from '../services.js'
import type { Session } from '../session.js'
import { DEPARTURE_BYTES, enteringUnits, MEMBER_BYTES, membersUnits } from '../work/costs.js'
import type { Handler, MessageOf } from './handler.js'

/** `}` */
const CLOSING_BRACE = 0x7d

/** Checks limits and grants. @throws {WebMQError} `E_KEY_INVALID`, `E_FORBIDDEN`. */
export function assertMayUse(session: Session, { key, op }: MessageOf<'presence'>): void {
  assertKeyWords(key, session.limits)
  // Who may listen to a key may see who is there. `leave` and `unwatch` give something up, so they need no grant.
  if (op === 'enter') assertMayEnter(session, key)
  if (op === 'get' || op === 'watch') assertMayListen(session, key)
}

/** Enters, leaves, and lists the members of a key: once, or with every later change [P-14.1]. */
export const presence: Handler<'presence'> = (session, services, message) => {
  const { id, key, op } = message
  assertMayUse(session, message)
  const { meter, ownPresence } = session
  switch (op) {
    case 'enter': {
      const { member, data } = message
      const length = data?.length ?? 0
      meter.charge(enteringUnits(length))
      const result = { id: ownPresence.enter(key, session.userId, member, data) }
      meter.charge(ownPresence.tellingUnits(key, MEMBER_BYTES + length))
      session.reply({ verb: 'ok', id, result })
      return
    }
    case 'leave':
      if (ownPresence.leave(key)) meter.charge(ownPresence.tellingUnits(key, DEPARTURE_BYTES))
      session.reply({ verb: 'ok', id })
      return
    case 'unwatch':
      ownPresence.unwatch(key)
      session.reply({ verb: 'ok', id })
      return
    case 'get':
      return whenComplete(session, services, () => answer(session, services, id, key))
    case 'watch':
      return whenComplete(session, services, () =>
        session.meter.charge(ownPresence.watch(key, () => answer(session, services, id, key))),
      )
  }
}

/** A node that has just begun with presence asks the others first; its clients wait for that, up to a limit. */
function whenComplete(session: Session, { presence }: SessionServices, next: () => void): void | Promise<void> {
  return andThen(presence.whenComplete(), () => {
    if (!session.isClosed) next()
  })
}

/** The members are copied once, into the frame: they may be large. */
function answer(session: Session, { presence }: SessionServices, id: string, key: string): void {
  const members = presence.members.encodedOf(key)
  const head = Buffer.from(`ok ${id}\n{"members":`)
  session.replyEncoded({
    byteLength: head.length + members.length + 1,
    writeTo(target, start) {
      target.set(head, start)
      target.set(members, start + head.length)
      target[start + head.length + members.length] = CLOSING_BRACE
    },
  })
  session.meter.charge(membersUnits(members.length))
}
