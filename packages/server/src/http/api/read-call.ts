import type { IncomingMessage } from 'node:http'
import { type ErrorCode, ownText, WebMQError } from 'webmq-client/protocol'
import type { Route } from './route.js'
import { MESSAGE_ID } from './shapes.js'

/** A part of a request that is not of its route's shape, where status 400 would say too little. */
export class RequestRefusal extends WebMQError {
  readonly status: number

  constructor(detail: string, status: number, code: ErrorCode = 'E_REQUEST_INVALID') {
    super(code, { detail })
    this.status = status
  }
}

/** Most parameters of a query; more are refused before they are looked at. */
const MAX_PARAMETERS = 32

/** Reads and checks the query of a request. @throws {WebMQError} `E_REQUEST_INVALID` with the name of the parameter. */
export function readQuery(url: string, { parameters, query }: Route): unknown {
  const at = url.indexOf('?')
  const values: Record<string, unknown> = {}
  let count = 0
  for (const [name, text] of new URLSearchParams(at < 0 ? '' : url.slice(at + 1))) {
    if (++count > MAX_PARAMETERS) throw invalid(`the query has more than ${MAX_PARAMETERS} parameters`)
    if (Object.hasOwn(values, name)) throw invalid(`the query has ${JSON.stringify(name.slice(0, 64))} twice`)
    const shape = Object.hasOwn(parameters, name) ? parameters[name] : undefined
    Object.defineProperty(values, name, { value: shape?.fromText?.(text) ?? ownText(text), enumerable: true })
  }
  const defect = query.defect(values)
  if (defect !== undefined) throw invalid(`the query ${defect}`)
  return values
}

/**
 * Reads the header `Idempotency-Key`, with or without the quotes of a structured field.
 * @throws {WebMQError} `E_REQUEST_INVALID`
 */
export function readIdempotencyKey({ headers }: IncomingMessage, { takesIdempotencyKey }: Route): string | undefined {
  const text = headers['idempotency-key']
  if (takesIdempotencyKey !== true || text === undefined) return undefined
  const id = String(text).replace(/^"(.*)"$/, '$1')
  const defect = MESSAGE_ID.defect(id)
  if (defect !== undefined) throw invalid(`the header Idempotency-Key ${defect}`)
  return id
}

/** Refuses a body that would have to be decoded. @throws {RequestRefusal} 415. */
export function assertPlain({ 'content-encoding': encoding = 'identity' }: IncomingMessage['headers']): void {
  if (encoding.toLowerCase() !== 'identity') throw new RequestRefusal('a body is sent without content-encoding', 415)
}

/** What the body of a request is, by its headers. @throws {RequestRefusal} 415 when the route does not take it. */
export function bodyFormatOf(
  { headers }: IncomingMessage,
  { takesBytes, takesFlow }: Route,
): 'json' | 'bytes' | 'text' {
  assertPlain(headers)
  const [type = '', ...parameters] = (headers['content-type'] ?? '').split(';').map((part) => part.trim().toLowerCase())
  const hasBytes = takesBytes === true || takesFlow === true
  if (type === 'application/json') return 'json'
  if (type === 'application/octet-stream' && hasBytes) return 'bytes'
  const isUtf8 = parameters.every((parameter) => !/^charset=/.test(parameter) || /^charset="?utf-?8"?$/.test(parameter))
  if (type === 'text/plain' && takesFlow === true && isUtf8) return 'text'
  const others = [...(hasBytes ? ['application/octet-stream'] : []), ...(takesFlow ? ['text/plain in UTF-8'] : [])]
  const allowed = ['application/json', ...others].join(' or ')
  throw new RequestRefusal(`the header content-type is not ${allowed}`, 415)
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Reads and checks a JSON body. @throws {WebMQError} `E_REQUEST_INVALID` with the name of the member. */
export function readJson(bytes: Buffer, { body }: Route): unknown {
  partCountOf(bytes, body?.size === 'batch' ? MAX_PARTS : Number.POSITIVE_INFINITY)
  let value: unknown
  try {
    value = JSON.parse(utf8.decode(bytes))
  } catch (cause) {
    throw new WebMQError('E_REQUEST_INVALID', { detail: 'the body is no JSON', cause })
  }
  const defect = body?.shape.defect(value)
  if (defect !== undefined) throw invalid(`the body ${defect}`)
  return value
}

/** Lists and objects within each other. Thousands of them would overflow the stack of whoever writes them again. */
const MAX_DEPTH = 256
const [QUOTE, BACKSLASH, LIST, OBJECT, LIST_END, OBJECT_END, COMMA, COLON] = Buffer.from('"\\[{]},:')

/**
 * Lists, objects, commas and colons of a batch: 30 members in each of 1,000 messages. Parsing takes at most some 10 ms: each
 * list item is then an object whose member has a name of its own.
 */
export const MAX_PARTS = 65_536

/**
 * Counts the lists, objects, commas and colons of a body. Cost: about a nanosecond per byte, before anything is parsed.
 * @throws {WebMQError} `E_REQUEST_INVALID` for too many of them, or too many within each other.
 */
export function partCountOf(bytes: Uint8Array, maxParts: number): number {
  let depth = 0
  let partCount = 0
  let isText = false
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index]
    if (isText) {
      if (byte === BACKSLASH) index++
      else if (byte === QUOTE) isText = false
    } else if (byte === QUOTE) isText = true
    else if (byte === COMMA || byte === COLON) partCount++
    else if (byte === LIST || byte === OBJECT) {
      if (++depth > MAX_DEPTH) throw invalid(`the body is nested more than ${MAX_DEPTH} levels deep`)
      partCount++
    } else if (byte === LIST_END || byte === OBJECT_END) depth--
    if (partCount > maxParts)
      throw invalid(`the body has more than ${maxParts} members and values: send several, or payloads as bytes`)
  }
  return partCount
}

function invalid(detail: string): WebMQError {
  return new WebMQError('E_REQUEST_INVALID', { detail })
}
