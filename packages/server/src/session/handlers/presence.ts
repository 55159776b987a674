import { WebMQError } from 'webmq-client/protocol'
import { andThen } from '../../ports/maybe-promise.js'
import type { Handler, HandlerContext } from './handler.js'

/** Enters, leaves, and says who is there: now, or now and with every change [P-14.1]. */
export const presence: Handler<'presence'> = (context, message) => {
  const { id, key, op } = message
  if (!context.mayListen(key)) throw new WebMQError('E_FORBIDDEN', { detail: `listen ${key}` })
  const { attendance } = context
  switch (op) {
    case 'enter': {
      const { member, data } = message
      const result = { id: attendance.enter(key, context.userId, member, data) }
      context.reply({ verb: 'ok', id, result })
      return
    }
    case 'leave':
      attendance.leave(key)
      context.reply({ verb: 'ok', id })
      return
    case 'unwatch':
      attendance.unwatch(key)
      context.reply({ verb: 'ok', id })
      return
    case 'get':
      return whenComplete(context, () => answer(context, id, key))
    case 'watch':
      return whenComplete(context, () => attendance.watch(key, () => answer(context, id, key)))
  }
}

/** A node that has only begun to take part asks the others first; its clients wait for that, within a bound. */
function whenComplete(context: HandlerContext, next: () => void): void | Promise<void> {
  return andThen(context.presence.whenComplete(), () => {
    if (!context.isClosed) next()
  })
}

function answer(context: HandlerContext, id: string, key: string): void {
  context.replyText(`ok ${id}\n{"members":${context.presence.membersJson(key)}}`)
}
