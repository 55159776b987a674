import { errorOfCloseCode, type TextServerMessage } from 'webmq-client/protocol'
import { JsonText } from '../../kernel/base/json-text.js'
import { isJson } from '../../kernel/base/parse-json.js'
import type { MessageAttributes } from '../../kernel/ports/attributes.js'
import type { InboundMessage } from '../../kernel/ports/broker.js'
import { formatPosition } from '../../kernel/ports/position.js'
import type { EventFormat } from '../../kernel/routing/delivery.js'

const CARRIAGE_RETURN = 0x0d
const NEWLINE = 0x0a

/** One event of an event stream (WHATWG HTML §9.2). */
export interface SseEvent {
  /** Absent: `message`. */
  readonly name?: string
  /** A reader that reconnects sends it as `Last-Event-ID`. */
  readonly id?: string
  /** Time after which a reader reconnects. */
  readonly retryMs?: number
  /** A {@link JsonText} has no line end. */
  readonly data: unknown
}

/** The text of an event. Its JSON has no line end. */
export function encodeSseEvent({ name, id, retryMs, data }: SseEvent): string {
  const json = data instanceof JsonText ? data.text : JSON.stringify(data)
  const head = `${name === undefined ? '' : `event: ${name}\n`}${id === undefined ? '' : `id: ${id}\n`}`
  return `${head}${retryMs === undefined ? '' : `retry: ${Math.round(retryMs)}\n`}data: ${json}\n\n`
}

/**
 * A message as an event: `{"key", "payload"}`. A binary payload is `base64` instead, and a text that is not JSON `text`. The
 * event of a logged message has its position as the id. With meta: also `userId`, `timeMs` and `id`, where the message has
 * them.
 *
 * Cost: the payload is parsed, so that what a publisher sends as JSON can never end the object around it. Once per message,
 * and only while somebody reads a stream.
 */
export function encodeSseMessage(
  { key, position, payload, isBinary, attributes }: InboundMessage,
  isReplayed: boolean,
  hasMeta = false,
): string {
  const id = position === undefined ? '' : `id: ${formatPosition(position)}\n`
  const replay = isReplayed ? ',"replay":true' : ''
  const meta = hasMeta && attributes !== undefined ? metaMembers(attributes) : ''
  const place = attributes?.stream === undefined ? '' : `,"stream":"${attributes.stream}"`
  return `${id}data: {"key":${JSON.stringify(key)}${replay}${meta}${place},${payloadMember(payload, isBinary)}}\n\n`
}

/** Begin with a comma. */
function metaMembers({ userId, timeMs, id }: MessageAttributes): string {
  return timeMs === undefined ? '' : `,${JSON.stringify({ userId, timeMs, id }).slice(1, -1)}`
}

function payloadMember(payload: Uint8Array, isBinary: boolean): string {
  const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength)
  if (isBinary) return `"base64":"${bytes.toString('base64')}"`
  const text = bytes.toString()
  if (!isJson(text)) return `"text":${JSON.stringify(text)}`
  // Between the tokens of JSON, a line end is white space.
  const hasLineEnds = bytes.includes(NEWLINE) || bytes.includes(CARRIAGE_RETURN)
  return `"payload":${hasLineEnds ? text.replaceAll(/[\r\n]/g, ' ') : text}`
}

/** A message of the server that is not for WebSockets alone. */
export function encodeSseServerMessage(message: TextServerMessage): string {
  switch (message.verb) {
    case 'bye': {
      const { code, retryAfterMs } = message
      const data = { code: errorOfCloseCode(code) ?? 'E_INTERNAL', closeCode: code }
      return encodeSseEvent({ name: 'bye', data, ...(retryAfterMs === undefined ? {} : { retryMs: retryAfterMs }) })
    }
    case 'error': {
      const { code, message: text, retryable, docs, pattern } = message
      return encodeSseEvent({ name: 'refused', data: { code, message: text, retryable, docs, pattern } })
    }
    default: {
      const { verb, ...data } = message
      return encodeSseEvent({ name: verb, data })
    }
  }
}

export const SSE_FORMAT: EventFormat = { encodeMessage: encodeSseMessage, encode: encodeSseServerMessage }
