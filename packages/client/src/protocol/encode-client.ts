import { WebMQError } from './errors.js'
import { isGroup, isId, isMessageId, isPosition } from './fields.js'
import type { ClientMessage } from './messages.js'

/**
 * One client message as it goes on the wire: a string for a text frame, bytes for a binary frame (a publish whose
 * payload is bytes). Keys and patterns are taken as valid: `validateKey` and `validatePattern` come first. The payload's
 * bytes are copied.
 * @throws {WebMQError} `E_MESSAGE_INVALID` when an id, message id, group, position or count would break the header.
 */
export function encodeClientMessage(message: ClientMessage): string | Uint8Array<ArrayBuffer> {
  switch (message.verb) {
    case 'auth':
      return `auth ${field(message.id, isId)}\n${message.token}`
    case 'listen':
      return `listen ${field(message.id, isId)} ${message.pattern}${range(message)}${option('group', message.group, isGroup)}`
    case 'unlisten':
      return `unlisten ${field(message.id, isId)} ${message.pattern}`
    case 'publish':
      return encodePublish(message)
    case 'history':
      return `history ${field(message.id, isId)} ${message.key}${range(message)}`
    case 'presence':
      return `presence ${field(message.id, isId)} ${message.key}`
    case 'ping':
      return 'ping'
  }
}

function encodePublish(message: Extract<ClientMessage, { verb: 'publish' }>): string | Uint8Array<ArrayBuffer> {
  const { id, key, messageId, echo, payload } = message
  const idField = id === undefined ? '-' : field(id, isId)
  const header = `publish ${idField} ${key}${option('id', messageId, isMessageId)}${echo ? '' : ' noecho'}\n`
  if (typeof payload === 'string') return header + payload
  const head = new TextEncoder().encode(header)
  const bytes = new Uint8Array(head.length + payload.length)
  bytes.set(head)
  bytes.set(payload, head.length)
  return bytes
}

function range({ since, last }: { readonly since?: string; readonly last?: number }): string {
  return option('since', since, isPosition) + option('last', last, Number.isSafeInteger)
}

function option<T extends string | number>(name: string, value: T | undefined, isValid: (value: T) => boolean): string {
  return value === undefined ? '' : ` ${name}=${field(value, isValid)}`
}

/** An unchecked space or newline in a header field would let whoever chose the field write the rest of the message. */
function field<T extends string | number>(value: T, isValid: (value: T) => boolean): T {
  if (!isValid(value)) throw new WebMQError('E_MESSAGE_INVALID', { detail: `header field ${JSON.stringify(value)}` })
  return value
}
