import { isUtf8 } from 'node:buffer'
import { copyBytes } from '../../kernel/base/copy-bytes.js'
import { measureJson } from '../../kernel/base/json-excess.js'
import { JsonText } from '../../kernel/base/json-text.js'
import { parseJson, textOf } from '../../kernel/base/parse-json.js'

/** JSON of one UTF-16 unit has at most 6 bytes, as in `\ud83d`. */
const MAX_BYTES_PER_UNIT = 6
const QUOTE = 0x22
const BACKSLASH = 0x5c

/** What was appended at once. */
export type Piece = string | Uint8Array

/** The longest piece of this kind that one message has room for. */
export function maxLengthOf(piece: Piece, maxPayloadBytes: number): number {
  return typeof piece === 'string'
    ? // One unit more may be left from the message before.
      Math.max(1, Math.floor((maxPayloadBytes - 2) / MAX_BYTES_PER_UNIT) - 1)
    : maxPayloadBytes
}

/** Each fits into one message. Bytes are copied. */
export function partsOf(piece: Piece, maxPayloadBytes: number): Piece[] {
  const maxLength = maxLengthOf(piece, maxPayloadBytes)
  const parts: Piece[] = []
  const whole = typeof piece === 'string' ? piece : copyBytes(piece)
  for (let at = 0; at < whole.length; at += maxLength) parts.push(whole.slice(at, at + maxLength))
  return parts
}

// What others have written into the log. Nothing below throws, whatever that is.

/** A text, or bytes, of an append; `undefined`: it is neither. */
export function pieceOf(payload: Uint8Array, isBinary: boolean): Piece | undefined {
  if (isBinary) return payload
  const value = parsedOf(payload)
  return typeof value === 'string' ? value : undefined
}

/** JSON on one line, as it is; `undefined` for what nobody should look into. */
export function shallowJson(payload: Uint8Array): JsonText | undefined {
  if (measureJson(payload).excess !== undefined || parsedOf(payload) === undefined) return undefined
  return JsonText.inLine(textOf(payload))
}

function parsedOf(payload: Uint8Array): unknown {
  try {
    return parseJson(payload)
  } catch {
    // The fold says that something is missing.
    return undefined
  }
}

/** All of one kind. */
export function joined(pieces: readonly Piece[]): Piece {
  return typeof pieces[0] === 'string' ? pieces.join('') : Buffer.concat(pieces as Uint8Array[])
}

/** Bytes as a payload. A text has no depth. @param payload That it was read from, if there is one. */
export function pieceBytes(piece: Piece, payload?: Uint8Array): number {
  if (typeof piece !== 'string') return piece.length
  // Nobody escapes what need not be escaped: in the usual case it is not written again to be counted.
  if (payload !== undefined && isAsWritten(payload)) return payload.length
  return Buffer.byteLength(JSON.stringify(piece))
}

function isAsWritten(payload: Uint8Array): boolean {
  return payload[0] === QUOTE && payload.at(-1) === QUOTE && !payload.includes(BACKSLASH) && isUtf8(payload)
}
