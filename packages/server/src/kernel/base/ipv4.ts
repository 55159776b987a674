const ZERO = 0x30
const DOT = 0x2e

/**
 * The bytes of an IPv4 address as one number from 0 to 2^32 - 1; `undefined` for any other text, also with leading zeros.
 * Runs several times for every connection: a regular expression takes four times as long.
 */
export function ipv4Of(address: string): number | undefined {
  let bytes = 0
  let byte = -1
  let dotCount = 0
  for (let at = 0; at < address.length; at++) {
    const code = address.charCodeAt(at)
    if (code === DOT) {
      if (byte < 0 || ++dotCount > 3) return undefined
      bytes = bytes * 256 + byte
      byte = -1
      continue
    }
    const digit = code - ZERO
    // Nothing follows a leading zero.
    if (digit < 0 || digit > 9 || byte === 0) return undefined
    byte = byte < 0 ? digit : byte * 10 + digit
    if (byte > 255) return undefined
  }
  return dotCount === 3 && byte >= 0 ? bytes * 256 + byte : undefined
}

/** The text of such a number. */
export function ipv4Text(bytes: number): string {
  return `${bytes >>> 24}.${(bytes >>> 16) & 255}.${(bytes >>> 8) & 255}.${bytes & 255}`
}
