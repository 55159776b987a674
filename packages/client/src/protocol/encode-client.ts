import { WebMQError } from './errors.js'
import { isGroup, isId, isMemberName, isMessageId, isPosition } from './fields.js'
import type { ClientMessage, WirePayload } from './messages.js'

/**
 * Encodes one client message: a string for a text frame, bytes for a binary frame (a publish with a binary payload).
 * Keys and patterns must be valid: call `validateKey` and `validatePattern` first. Copies the bytes of the payload.
 * @throws {WebMQError} `E_MESSAGE_INVALID` if an id, message id, group, position or count would break the header.
 */
export function encodeClientMessage(message: ClientMessage): string | Uint8Array<ArrayBuffer> {
  const { verb } = message
  if (verb === 'ping') return verb
  const id = message.id === undefined ? '-' : checked(message.id, isId)
  const start = `${verb} ${id}`
  switch (verb) {
    case 'auth':
      return `${start}\n${message.token}`
    case 'publish': {
      const { key, messageId, echo, payload } = message
      return withPayload(`${start} ${key}${option('id', messageId, isMessageId)}${echo ? '' : ' noecho'}\n`, payload)
    }
    case 'request':
      return withPayload(
        `${start} ${message.key}${option('within', message.withinMs, Number.isSafeInteger)}\n`,
        message.payload,
      )
    case 'reply':
      return withPayload(`${start}${message.isError ? ' error' : ''}\n`, message.payload)
    case 'listen':
      return `${start} ${message.pattern}${range(message)}${option('overflow', message.overflow, isGroup)}${membership(message)}`
    case 'unlisten':
      return `${start} ${message.pattern}${membership(message)}`
    case 'history':
      return `${start} ${message.key}${range(message)}${option('limit', message.limit, Number.isSafeInteger)}${message.reverse ? ' reverse' : ''}`
    case 'presence':
      return `${start} ${message.key} op=${message.op}${message.op === 'enter' ? member(message) : ''}`
  }
}

function withPayload(text: string, payload: WirePayload): string | Uint8Array<ArrayBuffer> {
  if (typeof payload === 'string') return text + payload
  const header = new TextEncoder().encode(text)
  const bytes = new Uint8Array(header.length + payload.length)
  bytes.set(header)
  bytes.set(payload, header.length)
  return bytes
}

function membership({ group, respond }: { readonly group?: string; readonly respond?: true }): string {
  return option('group', group, isGroup) + (respond ? ' respond' : '')
}

function member({ member, data }: { readonly member: string; readonly data?: string }): string {
  return option('member', member, isMemberName) + (data === undefined ? '' : `\n${data}`)
}

function range(message: Pick<Extract<ClientMessage, { verb: 'history' }>, 'since' | 'rewindMs' | 'last'>): string {
  return (
    option('since', message.since, isPosition) +
    option('rewind', message.rewindMs, Number.isSafeInteger) +
    option('last', message.last, Number.isSafeInteger)
  )
}

function option<T extends string | number>(name: string, value: T | undefined, isValid: (value: T) => boolean): string {
  return value === undefined ? '' : ` ${name}=${checked(value, isValid)}`
}

/** Without this check, a space or newline in a field could forge the rest of the message. */
function checked<T extends string | number>(value: T, isValid: (value: T) => boolean): T {
  if (!isValid(value)) throw new WebMQError('E_MESSAGE_INVALID', { detail: `header field ${JSON.stringify(value)}` })
  return value
}
