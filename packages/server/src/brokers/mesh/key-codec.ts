import { isKey } from 'webmq-client/protocol'

/** Keys whose bytes are remembered; one more begins anew. */
const MAX_WRITTEN_KEYS = 4_096
/** Places for keys that were read; a power of two. */
const READ_PLACES = 1_024

/** Turns keys into bytes; those that were seen lately are looked up. */
export class KeyWriter {
  #known = new Map<string, Uint8Array>()
  #lastKey: string | undefined
  #lastBytes: Uint8Array = new Uint8Array(0)

  /** The key in UTF-8; shared, not to be changed. */
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
  /** `undefined` when the bytes are no key. */
  readonly key: string | undefined
}

/** Turns bytes into keys; those that were seen lately are compared, not decoded and checked again. */
export class KeyReader {
  readonly #places = new Array<ReadKey | undefined>(READ_PLACES).fill(undefined)

  /** The key, or `undefined` when the bytes are none. */
  keyOf(bytes: Uint8Array, start: number, end: number): string | undefined {
    // FNV-1a; whoever makes keys collide makes them dearer to read, no more.
    let hash = 0x811c9dc5
    for (let index = start; index < end; index++) hash = Math.imul(hash ^ (bytes[index] as number), 0x01000193)
    const place = (hash ^ (hash >>> 15)) & (READ_PLACES - 1)
    const known = this.#places[place]
    if (known !== undefined && isSame(known.bytes, bytes, start, end)) return known.key
    const read = readKey(new Uint8Array(bytes.subarray(start, end)))
    this.#places[place] = read
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
    // The one reason to throw is that they are not UTF-8.
    return { bytes, key: undefined }
  }
}
