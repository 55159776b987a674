import { formatOffset, parseOffset } from './offset.js'

/** Position of a logged message; on the wire the text `epoch:offset.fingerprint` [P-8.1]. */
export interface MessagePosition {
  readonly epoch: string
  readonly offset: number
  /** 30 bits. 0: it is not known what stands there. */
  readonly fingerprint: number
}

/** Characters of a fingerprint. */
const FINGERPRINT_CHARS = 5
/** Those of a fingerprint and the dot before it. */
export const FINGERPRINT_BYTES = FINGERPRINT_CHARS + 1
const DOT = 0x2e
// Pure: the client library never writes or reads a fingerprint, so its bundle goes without.
const DIGITS = /* @__PURE__ */ Uint8Array.from(
  'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_',
  (char) => char.charCodeAt(0),
)
const DIGIT_BITS = 6
const DIGIT_MASK = 63

/** Formats a fingerprint: base64url, the highest bits first. */
export function formatFingerprint(fingerprint: number): string {
  let text = ''
  for (let shift = DIGIT_BITS * (FINGERPRINT_CHARS - 1); shift >= 0; shift -= DIGIT_BITS)
    text += String.fromCharCode(DIGITS[(fingerprint >>> shift) & DIGIT_MASK] ?? 0)
  return text
}

/** Writes a dot and a fingerprint into `target` from `start` on; returns where they end. */
export function putFingerprint(target: Uint8Array, start: number, fingerprint: number): number {
  target[start] = DOT
  target[start + 1] = DIGITS[(fingerprint >>> 24) & DIGIT_MASK] ?? 0
  target[start + 2] = DIGITS[(fingerprint >>> 18) & DIGIT_MASK] ?? 0
  target[start + 3] = DIGITS[(fingerprint >>> 12) & DIGIT_MASK] ?? 0
  target[start + 4] = DIGITS[(fingerprint >>> 6) & DIGIT_MASK] ?? 0
  target[start + 5] = DIGITS[fingerprint & DIGIT_MASK] ?? 0
  return start + FINGERPRINT_BYTES
}

/** Formats a position [P-8.1]. */
export function formatPosition({ epoch, offset, fingerprint }: MessagePosition): string {
  return `${epoch}:${formatOffset(offset)}.${formatFingerprint(fingerprint)}`
}

/**
 * Parses a position [P-8.1]; `undefined` if the text is none. `epoch:offset` alone, which an earlier server gave, has
 * the fingerprint 0.
 */
export function parsePosition(text: string): MessagePosition | undefined {
  const [, epoch = '', digits = '', fingerprint = 'AAAAA'] = /^(.+):([^.:]+)(?:\.([\w-]{5}))?$/.exec(text) ?? []
  const offset = parseOffset(digits)
  return offset === undefined ? undefined : { epoch, offset, fingerprint: parseFingerprint(fingerprint) }
}

function parseFingerprint(text: string): number {
  let fingerprint = 0
  for (let at = 0; at < text.length; at++)
    fingerprint = (fingerprint << DIGIT_BITS) | DIGITS.indexOf(text.charCodeAt(at))
  return fingerprint
}
