import { WebMQError } from 'webmq-client/protocol'
import { andThen } from '../../ports/maybe-promise.js'
import type { FrameData } from '../../ports/transport.js'
import { assertKeyWords, type WordLimits } from '../../ports/word-limits.js'
import type { ConnectionPresence, Presence } from '../../presence/index.js'
import { DEPARTURE_BYTES, enteringUnits, MEMBER_BYTES, membersUnits } from '../work/costs.js'
import type { Handler, HandlerContext, MessageOf } from './handler.js'

/** `}` */
const CLOSING_BRACE = 0x7d

/** What `presence` may use. */
export interface PresenceHandlerContext extends HandlerContext {
  readonly presence: Pick<Presence, 'whenComplete' | 'encodedMembers'>
  /** The members and the watches of this connection. */
  readonly ownPresence: Pick<ConnectionPresence, 'enter' | 'leave' | 'watch' | 'unwatch' | 'tellingUnits'>
  /** `undefined` for anonymous clients. */
  readonly userId: string | undefined
  readonly limits: Pick<WordLimits, 'maxWords'>
  mayListen(key: string): boolean
  mayEnter(key: string): boolean
  /** Sends an answer that is already encoded. */
  replyEncoded(data: FrameData): void
}

/**
 * Checks limits and grants.
 * @throws {WebMQError} `E_KEY_INVALID`, `E_FORBIDDEN`.
 */
export function assertMayUse(context: PresenceHandlerContext, { key, op }: MessageOf<'presence'>): void {
  assertKeyWords(key, context.limits)
  // Who may listen to a key may see who is there. `leave` and `unwatch` give something up, so they need no grant.
  if (op === 'enter' && !context.mayEnter(key)) throw new WebMQError('E_FORBIDDEN', { detail: `presence ${key}` })
  const isReading = op === 'get' || op === 'watch'
  if (isReading && !context.mayListen(key)) throw new WebMQError('E_FORBIDDEN', { detail: `listen ${key}` })
}

/** Enters, leaves, and lists the members of a key: once, or with every later change [P-14.1]. */
export const presence: Handler<'presence', PresenceHandlerContext> = (context, message) => {
  const { id, key, op } = message
  assertMayUse(context, message)
  const { meter, ownPresence } = context
  switch (op) {
    case 'enter': {
      const { member, data } = message
      const length = data?.length ?? 0
      meter.charge(enteringUnits(length))
      const result = { id: ownPresence.enter(key, context.userId, member, data) }
      meter.charge(ownPresence.tellingUnits(key, MEMBER_BYTES + length))
      context.reply({ verb: 'ok', id, result })
      return
    }
    case 'leave':
      if (ownPresence.leave(key)) meter.charge(ownPresence.tellingUnits(key, DEPARTURE_BYTES))
      context.reply({ verb: 'ok', id })
      return
    case 'unwatch':
      ownPresence.unwatch(key)
      context.reply({ verb: 'ok', id })
      return
    case 'get':
      return whenComplete(context, () => answer(context, id, key))
    case 'watch':
      return whenComplete(context, () => context.meter.charge(ownPresence.watch(key, () => answer(context, id, key))))
  }
}

/** A node that has just begun with presence asks the others first; its clients wait for that, up to a limit. */
function whenComplete(context: PresenceHandlerContext, next: () => void): void | Promise<void> {
  return andThen(context.presence.whenComplete(), () => {
    if (!context.isClosed) next()
  })
}

/** The members are copied once, into the frame: they may be large. */
function answer(context: PresenceHandlerContext, id: string, key: string): void {
  const members = context.presence.encodedMembers(key)
  const head = Buffer.from(`ok ${id}\n{"members":`)
  context.replyEncoded({
    byteLength: head.length + members.length + 1,
    writeTo(target, start) {
      target.set(head, start)
      target.set(members, start + head.length)
      target[start + head.length + members.length] = CLOSING_BRACE
    },
  })
  context.meter.charge(membersUnits(members.length))
}
