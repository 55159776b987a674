import { andThen } from '../../kernel/base/maybe-promise.js'
import { assertMayEnter, assertMayListen } from '../../kernel/identity/access.js'
import { assertKeyWords } from '../../kernel/ports/word-limits.js'
import type { MessageOf, VerbRow } from '../../kernel/session/handlers/handler.js'
import type { Session } from '../../kernel/session/session.js'
import type { OwnChange } from './connection.js'
import type { Presence } from './presence.js'

/** `}` */
const CLOSING_BRACE = 0x7d
/** Units of work to enter, beside those of the verb: a member is stored at its key and for its node, with a new stamp. */
const ENTER_UNITS = 10
/** Bytes of data that are parsed and written again per unit. */
const DATA_BYTES_PER_UNIT = 100
/** Bytes of the members of a key that are encoded, copied and sent per unit: no answer is larger. */
const MEMBER_BYTES_PER_UNIT = 400
/** Bytes of a member in a difference, beside its data. */
const MEMBER_BYTES = 60
/** The same of one that has left. */
const DEPARTURE_BYTES = 40

/** Enters, leaves, and lists the members of a key: once, or with every later change [P-14.1]. */
export function presenceVerb(presence: Presence): VerbRow<'presence'> {
  return {
    ask: (hooks, session, message) => {
      const { key, op } = message
      // Both give something up.
      if (op === 'leave' || op === 'unwatch') return undefined
      assertMayUse(session, message)
      const data = op === 'enter' ? message.data : undefined
      return andThen(hooks.presence(session, op, key, data), (data) =>
        data === undefined ? undefined : ({ ...message, data } as typeof message),
      )
    },
    handle: (session, _, message) => {
      const { id, key, op } = message
      assertMayUse(session, message)
      const { connection, meter } = session
      const own = presence.of(connection)
      const tell = (change: OwnChange | undefined, byteCount: number) => {
        if (change === undefined) return
        meter.charge(own.tellingUnits(key, byteCount))
        // Before the answer: so a client that was answered knows of itself what the node knows [P-14.5].
        if (change.told !== undefined) session.replyEncoded(change.told)
      }
      switch (op) {
        case 'enter': {
          const { member, data } = message
          const length = data?.length ?? 0
          meter.charge(ENTER_UNITS + length / DATA_BYTES_PER_UNIT)
          const entered = own.enter(key, session, member, data)
          tell(entered, MEMBER_BYTES + length)
          session.reply({ verb: 'ok', id, result: { id: entered.id } })
          return
        }
        case 'leave':
          tell(own.leave(key), DEPARTURE_BYTES)
          session.reply({ verb: 'ok', id })
          return
        case 'unwatch':
          own.unwatch(key)
          session.reply({ verb: 'ok', id })
          return
        case 'get':
          return whenComplete(presence, session, () => answer(presence, session, id, key))
        case 'watch':
          return whenComplete(presence, session, () =>
            session.meter.charge(own.watch(key, () => answer(presence, session, id, key))),
          )
      }
    },
  }
}

/** Checks limits and grants. @throws {WebMQError} `E_KEY_INVALID`, `E_FORBIDDEN`. */
function assertMayUse(session: Session, { key, op }: MessageOf<'presence'>): void {
  assertKeyWords(key, session.limits)
  // Who may listen to a key may see who is there. `leave` and `unwatch` give something up, so they need no grant.
  if (op === 'enter') assertMayEnter(session, key)
  if (op === 'get' || op === 'watch') assertMayListen(session, key)
}

/** A node that has just begun with presence asks the others first; its clients wait for that, up to a limit. */
function whenComplete(presence: Presence, session: Session, next: () => void): void | Promise<void> {
  return andThen(presence.whenComplete(), () => {
    if (!session.isClosed) next()
  })
}

/** The members are copied once, into the frame: they may be large. */
function answer(presence: Presence, session: Session, id: string, key: string): void {
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
  session.meter.charge(members.length / MEMBER_BYTES_PER_UNIT)
}
