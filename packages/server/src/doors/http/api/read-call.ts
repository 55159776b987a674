import type { IncomingMessage } from 'node:http'
import { type ErrorCode, ownText, WebMQError } from 'webmq-client/protocol'
import { MAX_JSON_PARTS, measureJson } from '../../../kernel/base/json-excess.js'
import { itemsOf, JsonText, membersOf } from '../../../kernel/base/json-text.js'
import type { Route } from './route.js'
import { MESSAGE_ID } from './shapes.js'

/** A part of a request that is not of its route's shape, where status 400 would say too little. */
export class RequestRefusal extends WebMQError {
  readonly status: number
  /** They tell more. */
  readonly headers: Readonly<Record<string, string>>

  /** @param text The detail, or the whole message. */
  constructor(
    text: string | { message: string },
    status: number,
    code: ErrorCode = 'E_REQUEST_INVALID',
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(code, typeof text === 'string' ? { detail: text } : text)
    this.status = status
    this.headers = headers
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

/** @throws {RequestRefusal} 415 for a body that would have to be decoded first. */
export function assertUnencoded({ headers }: Pick<IncomingMessage, 'headers'>): void {
  const { 'content-encoding': encoding = 'identity' } = headers
  if (encoding.toLowerCase() === 'identity') return
  throw new RequestRefusal('a body is sent without content-encoding', 415)
}

/** What the body of a request is, by its headers. @throws {RequestRefusal} 415 when the route does not take it. */
export function bodyFormatOf(request: IncomingMessage, { takesBytes, takesFlow }: Route): 'json' | 'bytes' | 'text' {
  assertUnencoded(request)
  const { headers } = request
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

/**
 * Reads and checks a JSON body. A payload in it is its text, so that numbers keep all their digits.
 * @throws {WebMQError} `E_REQUEST_INVALID` with the name of the member.
 */
export function readJson(bytes: Buffer, { body }: Route): unknown {
  assertMeasure(bytes, body?.size === 'batch' ? MAX_JSON_PARTS : undefined)
  let json: string
  let value: unknown
  try {
    json = utf8.decode(bytes)
    value = JSON.parse(json)
  } catch (cause) {
    throw new WebMQError('E_REQUEST_INVALID', { detail: 'the body is no JSON', cause })
  }
  const defect = body?.shape.defect(value)
  if (defect !== undefined) throw invalid(`the body ${defect}`)
  return withPayloadTexts(value as object, json)
}

/** @param value Has the shape of a route: an object, without payloads beyond those of its messages. */
function withPayloadTexts(value: object, json: string): object {
  const texts = new Map<string, string>()
  for (const [name, text] of membersOf(json)) {
    // Whoever looks at the first one, such as a firewall, sees another message.
    if (texts.has(name)) throw invalid(`the body has ${JSON.stringify(name)} twice`)
    texts.set(name, text)
  }
  const payload = texts.get('payload')
  if (payload !== undefined) return { ...value, payload: new JsonText(payload) }
  const messages = texts.get('messages')
  if (messages === undefined) return value
  const items = (value as { readonly messages: readonly object[] }).messages
  return { messages: itemsOf(messages).map((text, index) => withPayloadTexts(items[index] as object, text)) }
}

/**
 * @returns The lists, objects, commas and colons of a body.
 * @throws {WebMQError} `E_REQUEST_INVALID` for too many of them, or too many within each other.
 */
export function assertMeasure(bytes: Uint8Array, maxParts?: number): number {
  const { partCount, excess } = measureJson(bytes, maxParts)
  if (excess !== undefined) throw invalid(`the body ${excess}`)
  return partCount
}

function invalid(detail: string): WebMQError {
  return new WebMQError('E_REQUEST_INVALID', { detail })
}
