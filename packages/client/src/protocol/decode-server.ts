import { WebMQError } from './errors.js'
import { parseCount } from './fields.js'
import type { GapReason, ServerMessage, Welcome, WirePayload } from './messages.js'

type OkMessage = Extract<ServerMessage, { verb: 'ok' }>

/**
 * Reads one message of a server. Of a binary frame the payload is a view of `data`, not a copy. Unknown options, unknown
 * JSON members and gap reasons of later versions pass [P-11.2].
 * @throws {WebMQError} `E_VERB_UNKNOWN` for a verb of a later version, which a client ignores; `E_MESSAGE_INVALID`.
 */
export function decodeServerMessage(data: WirePayload): ServerMessage {
  const newline = typeof data === 'string' ? data.indexOf('\n') : data.indexOf(0x0a)
  const header = text(newline < 0 ? data : data.slice(0, newline))
  const body = newline < 0 ? undefined : typeof data === 'string' ? data.slice(newline + 1) : data.subarray(newline + 1)
  const [verb = '', first = '', second = '', ...rest] = header.split(' ')
  switch (verb) {
    case 'message':
      if (first === '' || second === '' || body === undefined) throw malformed(verb)
      return {
        verb,
        key: first,
        ...(second === '-' ? {} : { position: second }),
        replayed: rest.includes('replay'),
        payload: body,
      }
    case 'ok':
      return ok(first, second === '' ? [] : [second, ...rest], body)
    case 'error': {
      const { message = '', retryable = false, docs = '' } = json(verb, body)
      if (second === '' || typeof message !== 'string' || typeof docs !== 'string') throw malformed(verb)
      return {
        verb,
        ...(first === '-' ? {} : { id: first }),
        code: second,
        message,
        retryable: retryable === true,
        docs,
      }
    }
    case 'welcome': {
      const welcome = json(verb, body)
      if (!isWelcome(welcome)) throw malformed(verb)
      return { ...welcome, verb }
    }
    case 'gap':
      if (second === '') throw malformed(verb)
      return { verb, pattern: first, reason: second as GapReason }
    case 'expiring':
      return { verb, inMs: count(verb, first) }
    case 'pong':
      return { verb }
    case 'bye':
      return bye(count(verb, first), parseCount(second))
    default:
      throw new WebMQError('E_VERB_UNKNOWN', { detail: verb.slice(0, 32) })
  }
}

function bye(code: number, retryAfterMs: number | undefined): ServerMessage {
  return retryAfterMs === undefined ? { verb: 'bye', code } : { verb: 'bye', code, retryAfterMs }
}

function ok(id: string, options: readonly string[], body: WirePayload | undefined): OkMessage {
  if (id === '') throw malformed('ok')
  const message: { -readonly [K in keyof OkMessage]: OkMessage[K] } = { verb: 'ok', id }
  for (const option of options) {
    const equals = option.indexOf('=')
    const value = option.slice(equals + 1)
    switch (equals < 0 ? option : option.slice(0, equals)) {
      case 'position':
        message.position = value
        break
      case 'recovered':
        message.recovered = true
        break
      case 'gap':
        message.gap = value as GapReason
        break
      case 'replayed':
        message.replayed = count('ok', value)
        break
      case 'duplicate':
        message.duplicate = true
        break
    }
  }
  if (body !== undefined) message.result = parse('ok', body)
  return message
}

function text(data: WirePayload): string {
  // ignoreBOM: a key may begin with U+FEFF, which is a character like any other here.
  return typeof data === 'string' ? data : new TextDecoder('utf-8', { ignoreBOM: true }).decode(data)
}

function parse(verb: string, body: WirePayload): unknown {
  try {
    return JSON.parse(text(body))
  } catch (cause) {
    throw malformed(verb, cause)
  }
}

function json(verb: string, body: WirePayload | undefined): Readonly<Record<string, unknown>> {
  const value = parse(verb, body ?? '')
  if (typeof value !== 'object' || value === null) throw malformed(verb)
  return { ...value }
}

function isWelcome(json: Readonly<Record<string, unknown>>): json is Record<string, unknown> & Welcome {
  const { limits } = json
  return (
    typeof json.session === 'string' &&
    typeof json.auth === 'string' &&
    typeof json.heartbeatMs === 'number' &&
    typeof limits === 'object' &&
    limits !== null
  )
}

function count(verb: string, field: string): number {
  const value = parseCount(field)
  if (value === undefined) throw malformed(verb)
  return value
}

function malformed(verb: string, cause?: unknown): WebMQError {
  return new WebMQError('E_MESSAGE_INVALID', { detail: verb, cause })
}
