import { crc32 } from 'node:zlib'
import type { Piece } from './pieces.js'

/** The content of a stream as bytes: text in UTF-8. */
export interface FoldBytes {
  /** It has everything up to this message. */
  readonly sequence: number
  /** Shared: nobody may change it. */
  readonly bytes: Buffer
  /** What of the content is encoded: bytes, or UTF-16 units of a text. */
  readonly length: number
  /** Its first bytes are those. */
  readonly buffer: Buffer
  readonly at: number
  /** CRC-32 of the bytes. */
  readonly checksum: number
}

/** A fold that keeps what of it is encoded. */
interface Encodable {
  asBytes: FoldBytes | undefined
  readonly sequence: number
  readonly isActive: boolean
  after(length: number): Piece | undefined
}

const LEAST_BYTES = 1_024
const NO_BYTES = Buffer.alloc(0)
const NOTHING: FoldBytes = {
  ...{ sequence: -1, length: 0, at: 0, checksum: 0 },
  ...{ bytes: NO_BYTES, buffer: NO_BYTES },
}

/** What a fold has, as bytes. Readers of one stream share them, and what was added is encoded, not the whole. */
export function bytesOf(fold: Encodable): FoldBytes {
  const known = fold.asBytes ?? NOTHING
  if (known.sequence === fold.sequence) return known
  fold.asBytes = encode(known, fold)
  return fold.asBytes
}

function encode({ length, buffer, at, checksum }: FoldBytes, fold: Encodable): FoldBytes {
  const added = fold.after(length) ?? ''
  // The other half of a character may follow, and bytes that were read never change.
  const given = typeof added === 'string' && fold.isActive ? added.replace(/[\ud800-\udbff]$/, '') : added
  const piece = typeof given === 'string' ? Buffer.from(given) : given
  const grown = grownBytes(buffer, at, piece)
  const end = at + piece.length
  return {
    sequence: fold.sequence,
    bytes: grown.subarray(0, end),
    length: length + given.length,
    buffer: grown,
    at: end,
    checksum: crc32(piece, checksum),
  }
}

/**
 * Copies bytes behind the first `length` ones of a buffer, or of one with twice the room: so to add piece after piece costs
 * O(bytes). Views of what is there stay as they are.
 */
function grownBytes(buffer: Buffer, length: number, added: Uint8Array): Buffer {
  const end = length + added.length
  let grown = buffer
  if (end > buffer.length) {
    grown = Buffer.allocUnsafeSlow(Math.max(LEAST_BYTES, 2 * end))
    grown.set(buffer.subarray(0, length))
  }
  grown.set(added, length)
  return grown
}
