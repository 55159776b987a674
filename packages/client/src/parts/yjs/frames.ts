/**
 * What the messages of a document carry. A frame that is larger than a message may be is sent in several chunks.
 *
 * `update`: an update of Yjs. `ask`: a state vector, from a client that may lack something. `snapshot`: the whole
 * document, and the position in the log up to which it is complete. `written`: a snapshot was written. `cursor`: an
 * update of the awareness.
 */
export const KINDS = ['update', 'ask', 'snapshot', 'written', 'cursor'] as const
export type Kind = (typeof KINDS)[number]

/** One part of a frame, as it travels. */
export interface Chunk {
  readonly kind: Kind
  /** The same for all chunks of a frame, and random. */
  readonly id: number
  readonly index: number
  /** Number of chunks of the frame. */
  readonly count: number
  readonly bytes: Uint8Array
}

/** A whole frame. */
export interface Frame {
  readonly kind: Kind
  readonly bytes: Uint8Array
}

/** Kind, id, index and count. */
const HEADER_BYTES = 1 + 4 + 2 + 2
/** Of a frame, as the header has two bytes for it. */
export const MAX_CHUNKS = 0xffff

/**
 * Splits a frame into messages of at most `maxBytes`.
 * @returns `undefined` if that takes too many.
 */
export function encodeFrame({ kind, bytes }: Frame, maxBytes: number): readonly Uint8Array[] | undefined {
  const room = maxBytes - HEADER_BYTES
  const count = Math.max(1, Math.ceil(bytes.length / room))
  if (room < 1 || count > MAX_CHUNKS) return undefined
  const id = Math.floor(Math.random() * 0x1_0000_0000)
  return Array.from({ length: count }, (_, index) => {
    const body = bytes.subarray(index * room, (index + 1) * room)
    const message = new Uint8Array(HEADER_BYTES + body.length)
    const view = new DataView(message.buffer)
    view.setUint8(0, KINDS.indexOf(kind))
    view.setUint32(1, id)
    view.setUint16(5, index)
    view.setUint16(7, count)
    message.set(body, HEADER_BYTES)
    return message
  })
}

/** Reads a message; `undefined` if it is none of ours. */
export function decodeChunk(message: unknown): Chunk | undefined {
  if (!(message instanceof Uint8Array) || message.length < HEADER_BYTES) return undefined
  const view = new DataView(message.buffer, message.byteOffset, message.byteLength)
  const kind = KINDS[view.getUint8(0)]
  const [index, count] = [view.getUint16(5), view.getUint16(7)]
  if (kind === undefined || index >= count) return undefined
  return { kind, id: view.getUint32(1), index, count, bytes: message.subarray(HEADER_BYTES) }
}

interface Unfinished {
  readonly chunks: (Uint8Array | undefined)[]
  missing: number
  bytes: number
}

/** Joins chunks to frames. Frames whose chunks are late make room for newer ones, so memory is bounded. */
export class Joiner {
  readonly #maxBytes: number
  readonly #unfinished = new Map<string, Unfinished>()
  #bytes = 0

  /** @param maxBytes Of all frames that are not complete. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Bytes of frames that are not complete. */
  get bytes(): number {
    return this.#bytes
  }

  /** Takes a chunk, and returns its frame if that is complete now. */
  join({ kind, id, index, count, bytes }: Chunk): Frame | undefined {
    if (count === 1) return { kind, bytes }
    const name = `${kind} ${id} ${count}`
    const frame = this.#unfinished.get(name) ?? { chunks: [], missing: count, bytes: 0 }
    if (frame.chunks[index] !== undefined) return undefined
    frame.chunks[index] = bytes
    frame.missing--
    this.#grow(frame, bytes.length + HEADER_BYTES)
    // The newest last.
    this.#unfinished.delete(name)
    if (frame.missing > 0) {
      this.#unfinished.set(name, frame)
      this.#makeRoom()
      return undefined
    }
    this.#bytes -= frame.bytes
    return { kind, bytes: concatenate(frame.chunks as Uint8Array[]) }
  }

  #grow(frame: Unfinished, bytes: number): void {
    frame.bytes += bytes
    this.#bytes += bytes
  }

  #makeRoom(): void {
    for (const [name, frame] of this.#unfinished) {
      if (this.#bytes <= this.#maxBytes) return
      this.#unfinished.delete(name)
      this.#bytes -= frame.bytes
    }
  }
}

function concatenate(chunks: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(chunks.reduce((sum, { length }) => sum + length, 0))
  let offset = 0
  for (const chunk of chunks) {
    bytes.set(chunk, offset)
    offset += chunk.length
  }
  return bytes
}
