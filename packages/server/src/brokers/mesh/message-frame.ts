import { FRAME_HEAD_BYTES } from './frames.js'
import { readUint48, UINT48_BYTES, writeUint48 } from './uint48.js'

/** What a message has beside key and payload. */
export interface Marks {
  readonly isBinary: boolean
  /** Which of its origin's logged messages it is, from 1; 0 when it is not logged. */
  readonly sequence: number
  /** Index of the origin with the node that sends it; 0, its own, for a message that it has just accepted. */
  readonly origin: number
  /** Time since it was logged, in milliseconds; `undefined` for one that was just accepted. */
  readonly ageMs: number | undefined
  /** At most 255 bytes. */
  readonly messageId: Uint8Array | undefined
}

/** A message as it has come. */
export interface MarkedMessage extends Omit<Marks, 'messageId'> {
  readonly messageId: string | undefined
  readonly keyAt: number
  readonly keyEnd: number
}

const BINARY = 1
const LOGGED = 2
const IDENTIFIED = 4
const PAST = 8

const MAX_TEXT_BYTES = 255
/** Flags, sequence, origin, age; a message id and a key with their lengths. */
export const MAX_MARKED_HEAD_BYTES = FRAME_HEAD_BYTES + 1 + 3 * UINT48_BYTES + 2 * (1 + MAX_TEXT_BYTES)

/** Bytes of the body before the payload. */
export function markedHeadBytes({ sequence, ageMs, messageId }: Marks, key: Uint8Array): number {
  const pastBytes = ageMs === undefined ? 0 : 2 * UINT48_BYTES
  const idBytes = messageId === undefined ? 0 : 1 + messageId.length
  return 1 + (sequence > 0 ? UINT48_BYTES : 0) + pastBytes + idBytes + 1 + key.length
}

/** Writes what stands before the payload; returns where that goes. */
export function writeMarkedHead(bytes: Buffer, start: number, marks: Marks, key: Uint8Array): number {
  const { isBinary, sequence, origin, ageMs, messageId } = marks
  const flags = (isBinary ? BINARY : 0) | (sequence > 0 ? LOGGED : 0) | (messageId === undefined ? 0 : IDENTIFIED)
  let at = start
  bytes[at++] = ageMs === undefined ? flags : flags | PAST
  if (sequence > 0) {
    writeUint48(bytes, at, sequence)
    at += UINT48_BYTES
  }
  if (ageMs !== undefined) {
    writeUint48(bytes, at, origin)
    writeUint48(bytes, at + UINT48_BYTES, ageMs)
    at += 2 * UINT48_BYTES
  }
  if (messageId !== undefined) at = writeText(bytes, at, messageId)
  return writeText(bytes, at, key)
}

/** What stands before the payload, which begins at `keyEnd`; `undefined` when the body is too short. */
export function readMarkedHead(bytes: Buffer, start: number, end: number): MarkedMessage | undefined {
  const flags = bytes[start] ?? 0
  let at = start + 1
  let sequence = 0
  if ((flags & LOGGED) !== 0) {
    sequence = readUint48(bytes, at)
    at += UINT48_BYTES
  }
  let origin = 0
  let ageMs: number | undefined
  if ((flags & PAST) !== 0) {
    origin = readUint48(bytes, at)
    ageMs = readUint48(bytes, at + UINT48_BYTES)
    at += 2 * UINT48_BYTES
  }
  let messageId: string | undefined
  if ((flags & IDENTIFIED) !== 0) {
    const idAt = at + 1
    at = idAt + (bytes[at] ?? 0)
    messageId = bytes.toString('utf8', idAt, at)
  }
  const keyAt = at + 1
  const keyEnd = keyAt + (bytes[at] ?? 0)
  if (keyEnd > end) return undefined
  return { isBinary: (flags & BINARY) !== 0, sequence, origin, ageMs, messageId, keyAt, keyEnd }
}

/** What travels of a message id: `undefined` for one that is too long, which is then known to its own node alone. */
export function messageIdBytes(messageId: string | undefined): Uint8Array | undefined {
  if (messageId === undefined) return undefined
  const bytes = Buffer.from(messageId)
  return bytes.length <= MAX_TEXT_BYTES ? bytes : undefined
}

function writeText(bytes: Buffer, at: number, text: Uint8Array): number {
  bytes[at] = text.length
  bytes.set(text, at + 1)
  return at + 1 + text.length
}
