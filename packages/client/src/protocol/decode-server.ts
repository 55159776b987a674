import { WebMQError } from './errors.js'
import { parseCount } from './fields.js'
import type { GapReason, ServerMessage, Welcome, WirePayload } from './messages.js'

type OkMessage = Extract<ServerMessage, { verb: 'ok' }>

/**
 * Decodes one server message. The payload of a binary frame is a view of `data`, not a copy. Unknown options, unknown
 * JSON members and gap reasons of later versions are accepted [P-11.2].
 * @throws {WebMQError} `E_VERB_UNKNOWN` for a verb of a later version, which a client ignores; `E_MESSAGE_INVALID`.
 */
export function decodeServerMessage(data: WirePayload): ServerMessage {
  const newline = typeof data === 'string' ? data.indexOf('\n') : data.indexOf(0x0a)
  const header = textOf(newline < 0 ? data : data.slice(0, newline))
  const body = newline < 0 ? undefined : typeof data === 'string' ? data.slice(newline + 1) : data.subarray(newline + 1)
  const [verb, first = '', second = '', ...rest] = header.split(' ')
  switch (verb) {
    case 'message':
      if (second === '' || body === undefined) throw malformed(verb)
      return {
        verb,
        key: first,
        ...(second !== '-' && { position: second }),
        replayed: rest.includes('replay'),
        payload: body,
      }
    case 'task': {
      const [key = '', ...options] = rest
      if (key === '' || body === undefined) throw malformed(verb)
      const request = optionOf(options, 'request')
      const withinMs = parseCount(optionOf(options, 'within') ?? '')
      return {
        verb,
        group: first,
        pattern: second,
        key,
        ...(request !== undefined && { request }),
        ...(withinMs !== undefined && { withinMs }),
        payload: body,
      }
    }
    case 'reply':
      if (first === '' || body === undefined) throw malformed(verb)
      return { verb, id: first, isError: [second, ...rest].includes('error'), payload: body }
    case 'ok':
      return decodeOk(first, [second, ...rest], body)
    case 'error': {
      const { message, retryable, docs = '', retryAfterMs, pattern, group, respond, key } = decodeObject(verb, body)
      if (second === '' || typeof message !== 'string' || typeof docs !== 'string') throw malformed(verb)
      return {
        verb,
        ...(first !== '-' && { id: first }),
        code: second,
        message,
        retryable: retryable === true,
        docs,
        ...(typeof retryAfterMs === 'number' && { retryAfterMs }),
        ...(typeof pattern === 'string' && { pattern }),
        ...(typeof group === 'string' && { group }),
        ...(respond === true && { respond }),
        ...(typeof key === 'string' && { key }),
      }
    }
    case 'welcome': {
      const welcome = decodeObject(verb, body)
      if (!isWelcome(welcome)) throw malformed(verb)
      return { ...welcome, verb }
    }
    case 'gap':
      if (second === '') throw malformed(verb)
      return { verb, pattern: first, reason: second as GapReason }
    case 'presence':
      if (first === '') throw malformed(verb)
      return { ...decodeObject(verb, body), verb, key: first }
    case 'expiring':
      return { verb, inMs: decodeCount(verb, first) }
    case 'pong': {
      const position = / position=(\S+)/.exec(header)?.[1]
      return { verb, ...(position !== undefined && { position }) }
    }
    case 'bye': {
      const retryAfterMs = parseCount(second)
      return { verb, code: decodeCount(verb, first), ...(retryAfterMs !== undefined && { retryAfterMs }) }
    }
    default:
      throw new WebMQError('E_VERB_UNKNOWN', { detail: header.slice(0, 32) })
  }
}

function decodeOk(id: string, options: readonly string[], body: WirePayload | undefined): OkMessage {
  if (id === '') throw malformed('ok')
  const message: { -readonly [K in keyof OkMessage]: OkMessage[K] } = { verb: 'ok', id }
  for (const option of options) {
    const [name, value = ''] = option.split('=')
    switch (name) {
      case 'recovered':
      case 'duplicate':
      case 'more':
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

function optionOf(options: readonly string[], name: string): string | undefined {
  return options.find((option) => option.startsWith(`${name}=`))?.slice(name.length + 1)
}

function textOf(data: WirePayload): string {
  // ignoreBOM: a key may begin with U+FEFF, which is an ordinary character here.
  return typeof data === 'string' ? data : new TextDecoder('utf-8', { ignoreBOM: true }).decode(data)
}

function parse(verb: string, body: WirePayload): unknown {
  try {
    return JSON.parse(textOf(body))
  } catch (cause) {
    throw malformed(verb, cause)
  }
}

function decodeObject(verb: string, body: WirePayload = ''): Readonly<Record<string, unknown>> {
  // A value that is not an object has none of the members that the caller reads.
  return { ...Object(parse(verb, body)) }
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

function malformed(verb: string, cause?: unknown): WebMQError {
  return new WebMQError('E_MESSAGE_INVALID', { detail: verb, cause })
}
