import { refusalOf } from 'webmq-client/protocol'

/** Lists and objects within each other. Thousands of them overflow the stack of whoever writes them again. */
export const MAX_JSON_DEPTH = 256
const [QUOTE, BACKSLASH, LIST, OBJECT, LIST_END, OBJECT_END, COMMA, COLON] = Buffer.from('"\\[{]},:')

/**
 * What a JSON text has too much of, for whoever looks into it; `undefined`: nothing.
 * @param maxParts Lists, objects, commas and colons.
 *
 * Cost: about a nanosecond per byte, before anything is parsed.
 */
export function excessOf(json: Uint8Array, maxParts = Number.POSITIVE_INFINITY): string | undefined {
  let depth = 0
  let partCount = 0
  let isText = false
  for (let index = 0; index < json.length; index++) {
    const byte = json[index]
    if (isText) {
      if (byte === BACKSLASH) index++
      else if (byte === QUOTE) isText = false
    } else if (byte === QUOTE) isText = true
    else if (byte === COMMA || byte === COLON) partCount++
    else if (byte === LIST || byte === OBJECT) {
      if (++depth > MAX_JSON_DEPTH) return `is nested more than ${MAX_JSON_DEPTH} levels deep`
      partCount++
    } else if (byte === LIST_END || byte === OBJECT_END) depth--
    if (partCount > maxParts) return `has more than ${maxParts} members and values: send several, or payloads as bytes`
  }
  return undefined
}

/** @throws {WebMQError} `E_PAYLOAD_INVALID` for what is nested too deeply. */
export function assertShallow(json: Uint8Array): void {
  const detail = excessOf(json)
  if (detail !== undefined) throw refusalOf('E_PAYLOAD_INVALID', { detail: `the payload ${detail}` })
}
