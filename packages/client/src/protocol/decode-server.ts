import { WebMQError } from './errors.js'
import { parseCount } from './fields.js'
import type { GapReason, ServerMessage, Welcome, WirePayload } from './messages.js'
import { decodeMeta } from './meta.js'
import { decodeObject, malformed, parse, type RawMessage, textOf } from './raw-message.js'
import { decodeEnded, decodeReply, decodeTask } from './tasks.js'

type From<V extends ServerMessage['verb']> = Extract<ServerMessage, { verb: V }>

/** A server message that every client understands. */
export type CoreMessage = Exclude<ServerMessage, From<'presence' | 'task' | 'reply' | 'ended'>>

/**
 * Decodes one server message. The payload of a binary frame is a view of `data`, not a copy. Unknown options, unknown
 * JSON members and gap reasons of later versions are accepted [P-11.2].
 * @throws {WebMQError} `E_VERB_UNKNOWN` for a verb of a later version, which a client ignores; `E_MESSAGE_INVALID`.
 */
export function decodeServerMessage(data: WirePayload): ServerMessage {
  const message = decodeCoreMessage(data)
  if (!('fields' in message)) return message
  switch (message.verb) {
    case 'presence':
      return decodePresence(message)
    case 'task':
      return decodeTask(message)
    case 'reply':
      return decodeReply(message)
    case 'ended':
      return decodeEnded(message)
  }
  throw new WebMQError('E_VERB_UNKNOWN', { detail: message.verb.slice(0, 32) })
}

/** Same, but leaves messages with other verbs to the parts of the client. */
export function decodeCoreMessage(data: WirePayload): CoreMessage | RawMessage {
  const isText = typeof data === 'string'
  const newline = isText ? data.indexOf('\n') : data.indexOf(0x0a)
  const header = textOf(newline < 0 ? data : isText ? data.slice(0, newline) : data.subarray(0, newline))
  const body = newline < 0 ? undefined : isText ? data.slice(newline + 1) : data.subarray(newline + 1)
  if (header === 'message' || header.startsWith('message ')) return decodeMessage(header, body)
  const [verb = '', ...fields] = header.split(' ')
  const [first = '', second = ''] = fields
  switch (verb) {
    case 'ok':
      return decodeOk(first, fields.slice(1), body)
    case 'error': {
      const { message, retryable, docs = '', retryAfterMs, pattern, key } = decodeObject(verb, body)
      if (!second || typeof message !== 'string') throw malformed(verb)
      return {
        verb,
        id: first === '-' ? undefined : first,
        code: second,
        message,
        retryable: retryable === true,
        docs,
        retryAfterMs: Number.isFinite(retryAfterMs) ? retryAfterMs : undefined,
        pattern,
        key,
      } as From<'error'>
    }
    case 'welcome': {
      const welcome = decodeObject(verb, body)
      if (!isWelcome(welcome)) throw malformed(verb)
      return { ...welcome, verb }
    }
    case 'gap':
      if (!second) throw malformed(verb)
      return { verb, pattern: first, reason: second as GapReason }
    case 'expiring':
      return { verb, inMs: decodeCount(verb, first) }
    case 'pong':
      return { verb, position: / position=(\S+)/.exec(header)?.[1] }
    case 'bye':
      return { verb, code: decodeCount(verb, first), retryAfterMs: parseCount(second) }
    default:
      return { verb, fields, body }
  }
}

/** @throws {WebMQError} `E_MESSAGE_INVALID`. */
export function decodePresence({ fields: [key], body }: RawMessage): From<'presence'> {
  if (!key) throw malformed('presence')
  return { ...decodeObject('presence', body), verb: 'presence', key }
}

/** The most frequent message: splitting its header would take twice the time. */
function decodeMessage(header: string, payload: WirePayload | undefined): From<'message'> {
  const verb = 'message'
  const keyStart = verb.length + 1
  const keyEnd = header.indexOf(' ', keyStart)
  const positionEnd = header.indexOf(' ', keyEnd + 1)
  const options = positionEnd > keyEnd ? header.slice(positionEnd + 1).split(' ') : undefined
  const position = header.slice(keyEnd + 1, options && positionEnd)
  if (keyEnd < 0 || !position || payload === undefined) throw malformed(verb)
  return {
    verb,
    key: header.slice(keyStart, keyEnd),
    position: position === '-' ? undefined : position,
    replayed: !!options?.includes('replay'),
    meta: options && decodeMeta(options),
    payload,
  }
}

function decodeOk(id: string, options: readonly string[], body: WirePayload | undefined): From<'ok'> {
  if (!id) throw malformed('ok')
  const message: { -readonly [K in keyof From<'ok'>]: From<'ok'>[K] } = { verb: 'ok', id }
  for (const option of options) {
    const [name, value = ''] = option.split('=')
    switch (name) {
      case 'recovered':
      case 'duplicate':
      case 'more':
      case 'state':
        message[name] = true
        break
      case 'position':
      case 'gap':
        message[name] = value as GapReason
        break
      case 'replayed':
        message[name] = decodeCount('ok', value)
    }
  }
  if (body !== undefined) message.result = parse('ok', body)
  return message
}

function isWelcome(json: Readonly<Record<string, unknown>>): json is Record<string, unknown> & Welcome {
  const { session, auth, heartbeatMs, limits } = json
  const isComplete = typeof session === 'string' && typeof auth === 'string' && typeof heartbeatMs === 'number'
  return isComplete && limits instanceof Object
}

function decodeCount(verb: string, field: string): number {
  const count = parseCount(field)
  if (count === undefined) throw malformed(verb)
  return count
}
