import { invalidField, option, withPayload } from './encode-field.js'
import { isId } from './fields.js'
import type { ClientMessage, ClientVerb } from './messages.js'
import { encodeRead, encodeStream } from './streams.js'
import { encodeReply, encodeRequest, membership } from './tasks.js'

type From<V extends ClientVerb> = Extract<ClientMessage, { verb: V }>

/** A message whose options may also be given as `undefined`. */
type Loose<M> = { readonly [K in keyof M]: undefined extends M[K] ? M[K] | undefined : M[K] }

/** Where a replay begins. */
type Range = Loose<Pick<From<'history'>, 'since' | 'rewindMs' | 'last'>>

/**
 * Encodes one client message: a string for a text frame, bytes for a binary frame (a publish with a binary payload).
 * Keys and patterns must be valid: call `validateKey` and `validatePattern` first. Copies the bytes of the payload.
 *
 * Each verb has a function of its own, so that an app carries only those that it uses.
 * @throws {WebMQError} `E_MESSAGE_INVALID` if an id, message id, group, position or count would break the header.
 */
export function encodeClientMessage(message: ClientMessage): string | Uint8Array<ArrayBuffer> {
  if (message.verb !== 'ping' && message.id !== undefined && !isId(message.id)) throw invalidField(message.id)
  switch (message.verb) {
    case 'ping':
      return message.verb
    case 'auth':
      return encodeAuth(message.id, message.token)
    case 'publish':
      return encodePublish(message)
    case 'listen':
      return encodeListen(message) + membership(message)
    case 'unlisten':
      return encodeUnlisten(message.id, message.pattern) + membership(message)
    case 'request':
      return encodeRequest(message)
    case 'reply':
      return encodeReply(message)
    case 'history':
      return encodeHistory(message)
    case 'presence':
      return encodePresence(message)
    case 'stream':
      return encodeStream(message)
    case 'read':
      return encodeRead(message)
  }
}

/** Encodes `auth` [P-5.1]. */
export function encodeAuth(id: string, token: string): string {
  return `auth ${id}\n${token}`
}

/** Encodes `publish` [P-7.1]; bytes if its payload is bytes. */
export function encodePublish(message: Loose<Omit<From<'publish'>, 'verb'>>): string | Uint8Array<ArrayBuffer> {
  const { id = '-', key, messageId, echo, ephemeral, payload } = message
  const options = `${option('id', messageId)}${echo ? '' : ' noecho'}${flag('ephemeral', ephemeral)}`
  return withPayload(`publish ${id} ${key}${options}\n`, payload)
}

/** Encodes `listen` [P-6.1]. */
export function encodeListen(message: Loose<Omit<From<'listen'>, 'verb'>>): string {
  const { id, pattern, overflow, meta, state } = message
  return `listen ${id} ${pattern}${range(message)}${flag('state', state)}${option('overflow', overflow)}${flag('meta', meta)}`
}

/** Encodes `unlisten`. */
export function encodeUnlisten(id: string, pattern: string): string {
  return `unlisten ${id} ${pattern}`
}

/** Encodes `history`. */
export function encodeHistory(message: Loose<Omit<From<'history'>, 'verb'>>): string {
  const { id, key, limit, before, reverse, meta } = message
  return `history ${id} ${key}${range(message)}${option('limit', limit)}${option('before', before)}${flag('reverse', reverse)}${flag('meta', meta)}`
}

/** Encodes `presence` [P-14.1]. */
export function encodePresence(message: Loose<From<'presence'>>): string {
  const { id, key, op } = message
  const start = `presence ${id} ${key} op=${op}`
  if (message.op !== 'enter') return start
  const { member, data } = message
  return `${start}${option('member', member)}${data === undefined ? '' : `\n${data}`}`
}

function range({ since, rewindMs, last }: Range): string {
  return option('since', since) + option('rewind', rewindMs) + option('last', last)
}

function flag(name: string, isSet: true | undefined): string {
  return isSet ? ` ${name}` : ''
}
