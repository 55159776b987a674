import { isKey } from 'webmq-client/protocol'

/** Most cached keys; one more clears the cache. */
const MAX_WRITTEN_KEYS = 4_096
/** Cache slots for keys that were read; a power of two. */
const READ_SLOTS = 1_024

/** Encodes keys; recent ones come from a cache. */
export class KeyWriter {
  #known = new Map<string, Uint8Array>()
  #lastKey: string | undefined
  #lastBytes: Uint8Array = new Uint8Array(0)

  /** The key in UTF-8. The array is shared: do not change it. */
  bytesOf(key: string): Uint8Array {
    if (key === this.#lastKey) return this.#lastBytes
    let bytes = this.#known.get(key)
    if (bytes === undefined) {
      bytes = new TextEncoder().encode(key)
      if (this.#known.size >= MAX_WRITTEN_KEYS) this.#known = new Map()
      this.#known.set(key, bytes)
    }
    this.#lastKey = key
    this.#lastBytes = bytes
    return bytes
  }
}

interface ReadKey {
  readonly bytes: Uint8Array
  /** `undefined` if the bytes are not a key. */
  readonly key: string | undefined
}

/** Decodes keys; recent ones are compared with a cache instead of decoded and checked again. */
export class KeyReader {
  readonly #slots = new Array<ReadKey | undefined>(READ_SLOTS).fill(undefined)

  /** The key; `undefined` if the bytes are not a key. */
  keyOf(bytes: Uint8Array, start: number, end: number): string | undefined {
    // FNV-1a. Keys that are made to collide cost a decode each, nothing more.
    let hash = 0x811c9dc5
    for (let index = start; index < end; index++) hash = Math.imul(hash ^ (bytes[index] as number), 0x01000193)
    const slot = (hash ^ (hash >>> 15)) & (READ_SLOTS - 1)
    const known = this.#slots[slot]
    if (known !== undefined && isSame(known.bytes, bytes, start, end)) return known.key
    const read = readKey(new Uint8Array(bytes.subarray(start, end)))
    this.#slots[slot] = read
    return read.key
  }
}

function isSame(known: Uint8Array, bytes: Uint8Array, start: number, end: number): boolean {
  const { length } = known
  if (end - start !== length) return false
  for (let index = 0; index < length; index++) if (bytes[start + index] !== known[index]) return false
  return true
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function readKey(bytes: Uint8Array): ReadKey {
  try {
    const key = decoder.decode(bytes)
    return { bytes, key: isKey(key) ? key : undefined }
  } catch {
    // It throws only for bytes that are not UTF-8.
    return { bytes, key: undefined }
  }
}
