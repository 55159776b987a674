import {
  MAX_GROUP_CHARS,
  MAX_ID_CHARS,
  MAX_JOINED_POSITION_CHARS,
  MAX_MEMBER_CHARS,
  MAX_MESSAGE_ID_CHARS,
} from './limits.js'

/** Whether the text is a request id [P-2.5]; `-` means none. */
export function isId(text: string): boolean {
  return isName(text, MAX_ID_CHARS) && text !== '-'
}

/** Whether the text is a message id [P-7.3]. */
export function isMessageId(text: string): boolean {
  return isName(text, MAX_MESSAGE_ID_CHARS)
}

/** Whether the text is the name of a queue group [P-6.6]. */
export function isGroup(text: string): boolean {
  return isName(text, MAX_GROUP_CHARS)
}

/** Whether the text is a client's name for its member [P-14.3]. */
export function isMemberName(text: string): boolean {
  return isName(text, MAX_MEMBER_CHARS)
}

/** A position, or several that are joined by commas, which an earlier server gave: the server answers those with a gap. */
const POSITION = /^(?!-$)(?:[\w:.-]{1,70}|\d\d?\.[\w:.-]+(?:,\d\d?\.[\w:.-]+)+)$/

/** Whether the text has the form of a position [P-8.1]. Only the broker can tell whether it exists. */
export function isPosition(text: string): boolean {
  return text.length <= MAX_JOINED_POSITION_CHARS && POSITION.test(text)
}

/**
 * Parses a count or a time [P-2.6]: decimal, at most 15 digits, so that it is a safe integer; otherwise `undefined`.
 */
export function parseCount(text: string): number | undefined {
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined
}

function isName(text: string, maxChars: number): boolean {
  return /^[\w-]+$/.test(text) && text.length <= maxChars
}
