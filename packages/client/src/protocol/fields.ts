import { MAX_GROUP_CHARS, MAX_ID_CHARS, MAX_MEMBER_CHARS, MAX_MESSAGE_ID_CHARS, MAX_POSITION_CHARS } from './limits.js'

/** A request id [P-2.5]; as for a position, `-` alone means that there is none. */
export function isId(text: string): boolean {
  return isName(text, MAX_ID_CHARS) && text !== '-'
}

/** A message id [P-7.3]. */
export function isMessageId(text: string): boolean {
  return isName(text, MAX_MESSAGE_ID_CHARS)
}

/** The name of a queue group [P-6.6]. */
export function isGroup(text: string): boolean {
  return isName(text, MAX_GROUP_CHARS)
}

/** What a client calls its member [P-14.2]. */
export function isMemberName(text: string): boolean {
  return isName(text, MAX_MEMBER_CHARS)
}

/** A position as far as the protocol knows it [P-8.1]; whether the broker knows it is another question. */
export function isPosition(text: string): boolean {
  return /^[\w:.-]+$/.test(text) && text.length <= MAX_POSITION_CHARS && text !== '-'
}

/**
 * A count or a time on the wire [P-2.6]: decimal, at most 15 digits, so that it is a safe integer; otherwise
 * `undefined`.
 */
export function parseCount(text: string): number | undefined {
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined
}

function isName(text: string, maxChars: number): boolean {
  return /^[\w-]+$/.test(text) && text.length <= maxChars
}
