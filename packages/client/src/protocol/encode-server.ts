import { messageHeader } from './encode-message.js'
import type { ServerMessage } from './messages.js'
import { encodeMeta } from './meta.js'
import { encodeEnded, replyHeader, taskHeader } from './tasks.js'

type WithPayload = Extract<ServerMessage, { verb: 'message' | 'task' | 'reply' }>

/** Every server message with a text form; those with a binary payload have encoders of their own. */
export type TextServerMessage = Exclude<ServerMessage, WithPayload> | (WithPayload & { readonly payload: string })

/**
 * Encodes one server message for a text frame. Fields must be valid: they come from decoded messages or from the
 * broker.
 */
export function encodeServerMessage(message: TextServerMessage): string {
  switch (message.verb) {
    case 'welcome': {
      const { verb, ...welcome } = message
      return `${verb}\n${JSON.stringify(welcome)}`
    }
    case 'ok': {
      const { id, position, recovered, gap, replayed, more, state, duplicate, overflow, result } = message
      let header = `ok ${id}`
      if (position !== undefined) header += ` position=${position}`
      if (recovered === true) header += ' recovered'
      if (gap !== undefined) header += ` gap=${gap}`
      if (replayed !== undefined) header += ` replayed=${replayed}`
      if (more) header += ' more'
      if (state) header += ' state'
      if (duplicate === true) header += ' duplicate'
      if (overflow !== undefined) header += ` overflow=${overflow}`
      return result === undefined ? header : `${header}\n${JSON.stringify(result)}`
    }
    case 'error': {
      const { verb, id, code, ...json } = message
      return `${verb} ${id ?? '-'} ${code}\n${JSON.stringify(json)}`
    }
    case 'message':
      return `${messageHeader(message.key, message.position, message.replayed, message.meta && encodeMeta(message.meta))}${message.payload}`
    case 'task':
      return `${taskHeader(message)}${message.payload}`
    case 'reply':
      return `${replyHeader(message)}${message.payload}`
    case 'ended':
      return encodeEnded(message)
    case 'gap':
      return `gap ${message.pattern} ${message.reason}`
    case 'presence': {
      const { verb, key, ...json } = message
      return `${verb} ${key}\n${JSON.stringify(json)}`
    }
    case 'expiring':
      return `expiring ${message.inMs}`
    case 'pong':
      return message.position === undefined ? 'pong' : `pong position=${message.position}`
    case 'bye':
      return message.retryAfterMs === undefined ? `bye ${message.code}` : `bye ${message.code} ${message.retryAfterMs}`
  }
}
