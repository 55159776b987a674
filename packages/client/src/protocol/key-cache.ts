import { isKey } from './keys.js'
import { MAX_KEY_BYTES } from './limits.js'
import { decodeUtf8 } from './utf8.js'

/** A decoded key and the bytes that it was decoded from. */
export interface CachedKey {
  readonly text: string
  readonly bytes: Uint8Array
  readonly byteLength: number
}

/** A power of two; 4,096 keys of maximum length take about 3 MiB. */
const SLOT_COUNT = 4_096
const SPACE = 0x20
const NEWLINE = 0x0a

/** 1 for visible ASCII except `*` and `#`. */
const IS_PLAIN = Uint8Array.from({ length: 256 }, (_, byte) =>
  Number(byte > 0x20 && byte < 0x7f && byte !== 0x23 && byte !== 0x2a),
)

const slots = new Array<CachedKey | undefined>(SLOT_COUNT).fill(undefined)

/**
 * Reads the key in `data` from `start` up to a space, a newline or `dataEnd`; `undefined` if it is not valid. Keys recur, and
 * comparing bytes is cheaper than decoding and checking them. The cache is a direct-mapped table by FNV-1a: two keys
 * with the same slot replace each other.
 *
 * Cost: O(length), at most 256 bytes are read.
 */
export function readKey(data: Uint8Array, start: number, dataEnd: number): CachedKey | undefined {
  const limit = Math.min(dataEnd, start + MAX_KEY_BYTES + 1)
  let hash = 0x811c9dc5
  let end = start
  for (; end < limit; end++) {
    const byte = data[end] ?? 0
    if (byte === SPACE || byte === NEWLINE) break
    hash = Math.imul(hash ^ byte, 0x01000193)
  }
  const slot = (hash ^ (hash >>> 15)) & (SLOT_COUNT - 1)
  const cached = slots[slot]
  if (cached !== undefined && isSame(cached.bytes, data, start, end)) return cached
  // Always a copy: `data` is borrowed, and `slice` of a Node Buffer would be a view of it.
  const fresh = decode(new Uint8Array(data.subarray(start, end)))
  if (fresh !== undefined) slots[slot] = fresh
  return fresh
}

function isSame(bytes: Uint8Array, data: Uint8Array, start: number, end: number): boolean {
  if (bytes.length !== end - start) return false
  for (let at = 0; at < bytes.length; at++) {
    if (bytes[at] !== data[start + at]) return false
  }
  return true
}

function decode(bytes: Uint8Array): CachedKey | undefined {
  const text = decodeUtf8(bytes)
  const isValid = text !== undefined && (isPlain(bytes) || isKey(text))
  return isValid ? { text, bytes, byteLength: bytes.length } : undefined
}

/** Whether the bytes are a key of plain ASCII, as most are. */
function isPlain(bytes: Uint8Array): boolean {
  return bytes.length > 0 && bytes.length <= MAX_KEY_BYTES && bytes.every((byte) => IS_PLAIN[byte] === 1)
}
