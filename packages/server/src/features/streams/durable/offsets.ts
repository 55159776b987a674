import { crc32 } from 'node:zlib'
import { RequestRefusal } from '../../../doors/http/api/read-call.js'
import type { StreamFold } from '../fold.js'
import { gone, type StreamView } from './view.js'

const START: Place = { at: 0, checksum: 0 }
/** Offsets of one stream sort as text. */
const DIGITS = 16
const RADIX = 36
/** Of 32 bits. */
const CHECK_DIGITS = 7
const NEWLINE = 10

export interface Place {
  /** Bytes before it. */
  readonly at: number
  /** CRC-32 of these: if the log lost some, and others came there, a reader would go on with another text. */
  readonly checksum: number
}

/** Names a place of a stream for its readers: an opaque text. */
export function formatOffset(stream: string, { at, checksum }: Place): string {
  return `${stream}_${String(at).padStart(DIGITS, '0')}_${checksum.toString(RADIX).padStart(CHECK_DIGITS, '0')}`
}

/** What a reader names: a place, or one of the stream that is there. */
export type ReadOffset = 'start' | 'now' | (Place & { readonly stream: string })

/** @throws {RequestRefusal} 400. */
export function parseOffset(text: string): ReadOffset {
  if (text === '-1') return 'start'
  if (text === 'now') return 'now'
  const [, stream, digits, check = ''] = /^([\w-]{1,36})_(\d{16})_([\da-z]{7})$/.exec(text) ?? []
  if (stream === undefined || digits === undefined) throw new RequestRefusal('the offset is none', 400)
  return { stream, at: Number(digits), checksum: Number.parseInt(check, RADIX) }
}

/** Whether the stream has come to what a reader had. */
export function isReached(offset: ReadOffset, view: Pick<StreamView, 'id' | 'end'> | undefined): boolean {
  if (typeof offset !== 'object') return view !== undefined
  return view?.id === offset.stream && view.end.at >= offset.at
}

/**
 * Where a reader begins.
 * @param view At the end of the log, or at the offset.
 * @throws {WebMQError} 400; 410: what follows its offset is not in the log.
 */
export function startOf(offset: ReadOffset, view: StreamView): Place {
  if (offset === 'start') return START
  if (offset === 'now') return view.end
  const { id, bytes, isJson } = view
  const { stream, at, checksum } = offset
  if (stream !== id) throw gone('the offset is one of another stream')
  if (at > bytes.length || crc32(bytes.subarray(0, at)) !== checksum) throw gone('what was read is not in the log')
  if (isJson && at > 0 && bytes[at - 1] !== NEWLINE) throw new RequestRefusal('the offset is none', 400)
  return { at, checksum }
}

/** Where a reader is who gets the bytes up to `at`. */
export function placeAfter({ bytes }: StreamView, from: Place, at: number): Place {
  return { at, checksum: crc32(bytes.subarray(from.at, at), from.checksum) }
}

/** Refuses a reader of a stream that the log has forgotten as a whole. @throws {RequestRefusal} 410. */
export function assertKnown(offset: ReadOffset, { stream }: StreamFold): void {
  if (typeof offset === 'object' && stream === undefined) throw gone('nothing of the stream is in the log')
}

/** Cursors count intervals from here on: 9 October 2024. */
const EPOCH_MS = 1_728_432_000_000
const INTERVAL_MS = 20_000
const MAX_JITTER_MS = 3_600_000

/**
 * Names the time, so that caches between do not give a reader the same answer for ever.
 * @param last As the reader had it last: the next one is greater.
 */
export function cursorAfter(last: string | undefined): string {
  const now = Math.floor((Date.now() - EPOCH_MS) / INTERVAL_MS)
  const had = last !== undefined && /^\d{1,15}$/.test(last) ? Number(last) : -1
  if (had < now) return `${now}`
  return `${had + Math.max(1, Math.ceil((Math.random() * MAX_JITTER_MS) / INTERVAL_MS))}`
}
