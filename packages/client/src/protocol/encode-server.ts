import { WebMQError } from './errors.js'
import { MAX_HEADER_BYTES } from './limits.js'
import type { ServerMessage } from './messages.js'

type MessageMessage = Extract<ServerMessage, { verb: 'message' }>

/** Every server message that has a text form; a `message` whose payload is bytes goes through {@link encodeMessageFrame}. */
export type TextServerMessage = Exclude<ServerMessage, MessageMessage> | (MessageMessage & { readonly payload: string })

/** One server message as the text of a text frame. Fields are taken as valid: they come from decoded messages or from the broker. */
export function encodeServerMessage(message: TextServerMessage): string {
  switch (message.verb) {
    case 'welcome': {
      const { verb, ...welcome } = message
      return `${verb}\n${JSON.stringify(welcome)}`
    }
    case 'ok': {
      const { id, position, recovered, gap, replayed, duplicate, result } = message
      let header = `ok ${id}`
      if (position !== undefined) header += ` position=${position}`
      if (recovered === true) header += ' recovered'
      if (gap !== undefined) header += ` gap=${gap}`
      if (replayed !== undefined) header += ` replayed=${replayed}`
      if (duplicate === true) header += ' duplicate'
      return result === undefined ? header : `${header}\n${JSON.stringify(result)}`
    }
    case 'error': {
      const { verb, id, code, ...json } = message
      return `${verb} ${id ?? '-'} ${code}\n${JSON.stringify(json)}`
    }
    case 'message':
      return `${messageHeader(message.key, message.position, message.replayed)}${message.payload}`
    case 'gap':
      return `gap ${message.pattern} ${message.reason}`
    case 'expiring':
      return `expiring ${message.inMs}`
    case 'pong':
      return 'pong'
    case 'bye':
      return message.retryAfterMs === undefined ? `bye ${message.code}` : `bye ${message.code} ${message.retryAfterMs}`
  }
}

const encoder = new TextEncoder()

/**
 * One `message` with its payload, as bytes for a frame of either kind: the fan-out path. `key` and `position` are taken
 * as valid; the payload is copied, nothing is parsed. Cost: one allocation, O(bytes).
 */
export function encodeMessageFrame(
  key: string,
  position: string | undefined,
  isReplayed: boolean,
  payload: Uint8Array,
): Uint8Array {
  const header = messageHeader(key, position, isReplayed)
  const frame = new Uint8Array(header.length + payload.length)
  for (let at = 0; at < header.length; at++) {
    const unit = header.charCodeAt(at)
    if (unit > 0x7f) return encodeNonAscii(header, payload)
    frame[at] = unit
  }
  frame.set(payload, header.length)
  return frame
}

function encodeNonAscii(header: string, payload: Uint8Array): Uint8Array {
  const head = encoder.encode(header)
  if (head.length > MAX_HEADER_BYTES) throw new WebMQError('E_KEY_INVALID')
  const frame = new Uint8Array(head.length + payload.length)
  frame.set(head)
  frame.set(payload, head.length)
  return frame
}

function messageHeader(key: string, position: string | undefined, isReplayed: boolean): string {
  return `message ${key} ${position ?? '-'}${isReplayed ? ' replay' : ''}\n`
}
