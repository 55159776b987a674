import { readKey } from './key-cache.js'
import { MAX_ID_CHARS, MAX_MESSAGE_ID_CHARS } from './limits.js'
import type { ClientMessage } from './messages.js'

/** A message that lies among others: from `start` to `end` of `bytes`. */
export interface MessagePart {
  readonly bytes: Uint8Array
  /** That of `bytes`: to ask `bytes` for it takes as long as the rest of decoding. */
  readonly buffer: ArrayBufferLike
  /** Where `bytes` begins in it. */
  readonly byteOffset: number
  readonly start: number
  readonly end: number
}

type PublishMessage = Extract<ClientMessage, { verb: 'publish' }>

const NEWLINE = 0x0a
const SPACE = 0x20
const DASH = 0x2d
const VERB = Uint8Array.from('publish ', (char) => char.charCodeAt(0))
const ID_OPTION = Uint8Array.from('id=', (char) => char.charCodeAt(0))
const NO_ECHO = Uint8Array.from('noecho', (char) => char.charCodeAt(0))
const EPHEMERAL = Uint8Array.from('ephemeral', (char) => char.charCodeAt(0))

/** 1 for bytes that are allowed in an id [P-2.5], else 0. */
const IS_ID_BYTE = new Uint8Array(256)
for (const char of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-') {
  IS_ID_BYTE[char.charCodeAt(0)] = 1
}

/**
 * Decodes a plain `publish`: well-formed, with known options only. It works byte by byte, because a server does this
 * once per message. Returns `undefined` for everything else, including malformed messages; the general decoder then
 * decides. Both agree wherever both answer.
 */
export function decodePlainPublish({ bytes, buffer, byteOffset, start, end }: MessagePart): PublishMessage | undefined {
  if (!startsWith(bytes, VERB, start, end)) return undefined
  const idStart = start + VERB.length
  const idEnd = idFieldEnd(bytes, idStart, end, MAX_ID_CHARS)
  if (idEnd === idStart || idEnd === end || bytes[idEnd] !== SPACE) return undefined
  const hasId = idEnd - idStart > 1 || bytes[idStart] !== DASH

  const key = readKey(bytes, idEnd + 1, end)
  if (key === undefined) return undefined
  let at = idEnd + 1 + key.byteLength

  let messageId: string | undefined
  let echo = true
  let isEphemeral = false
  while (at < end && bytes[at] === SPACE) {
    at++
    if (messageId === undefined && startsWith(bytes, ID_OPTION, at, end)) {
      const idStart = at + ID_OPTION.length
      at = idFieldEnd(bytes, idStart, end, MAX_MESSAGE_ID_CHARS)
      if (at === idStart) return undefined
      messageId = asciiText(bytes, idStart, at)
    } else if (echo && startsWith(bytes, NO_ECHO, at, end)) {
      at += NO_ECHO.length
      echo = false
    } else if (!isEphemeral && startsWith(bytes, EPHEMERAL, at, end)) {
      at += EPHEMERAL.length
      isEphemeral = true
    } else return undefined
  }
  // Id, key and message id are limited, so a plain header never approaches MAX_HEADER_BYTES.
  if (at >= end || bytes[at] !== NEWLINE) return undefined
  const payload = new Uint8Array(buffer, byteOffset + at + 1, end - at - 1)
  const { text } = key
  if (isEphemeral) {
    return {
      verb: 'publish',
      ...(hasId ? { id: asciiText(bytes, idStart, idEnd) } : {}),
      key: text,
      ...(messageId === undefined ? {} : { messageId }),
      echo,
      ephemeral: true,
      payload,
    }
  }
  if (!hasId) {
    return messageId === undefined
      ? { verb: 'publish', key: text, echo, payload }
      : { verb: 'publish', key: text, messageId, echo, payload }
  }
  const id = asciiText(bytes, idStart, idEnd)
  return messageId === undefined
    ? { verb: 'publish', id, key: text, echo, payload }
    : { verb: 'publish', id, key: text, messageId, echo, payload }
}

function startsWith(data: Uint8Array, prefix: Uint8Array, start: number, end: number): boolean {
  if (end - start < prefix.length) return false
  for (let at = 0; at < prefix.length; at++) {
    if (data[start + at] !== prefix[at]) return false
  }
  return true
}

/** End of the id that begins at `start`; reads at most `maxChars` bytes, up to `end`. */
function idFieldEnd(data: Uint8Array, start: number, end: number, maxChars: number): number {
  const limit = Math.min(end, start + maxChars)
  let at = start
  while (at < limit && IS_ID_BYTE[data[at] ?? 0] === 1) at++
  return at
}

/** Eight, then four characters per call. For a string as short as an id, this costs at most half of a TextDecoder. */
function asciiText(data: Uint8Array, start: number, end: number): string {
  let text = ''
  let at = start
  for (; at + 8 <= end; at += 8) {
    text += String.fromCharCode(
      data[at] ?? 0,
      data[at + 1] ?? 0,
      data[at + 2] ?? 0,
      data[at + 3] ?? 0,
      data[at + 4] ?? 0,
      data[at + 5] ?? 0,
      data[at + 6] ?? 0,
      data[at + 7] ?? 0,
    )
  }
  if (at + 4 <= end) {
    text += String.fromCharCode(data[at] ?? 0, data[at + 1] ?? 0, data[at + 2] ?? 0, data[at + 3] ?? 0)
    at += 4
  }
  for (; at < end; at++) text += String.fromCharCode(data[at] ?? 0)
  return text
}
