import { crc32 } from 'node:zlib'
import { isObject } from '../../kernel/base/is-object.js'

/** What a server notes with each message of a stream with many writers [P-18.8]. */
export interface Mark {
  /** Of this message alone: its server knows by it which of two messages with one number was taken. */
  readonly token: string
  /** When its server wrote it, Unix time in milliseconds. */
  readonly atMs: number
  readonly producer?: Producer | undefined
  /** Greater than that of all messages before. */
  readonly streamSeq?: string | undefined
}

/** Who has written a message, for retries. */
export interface Producer {
  readonly id: string
  readonly epoch: number
  readonly sequence: number
}

/** What is known of a stream with many writers, beside its content. It is JSON: a roll-up can carry it. */
export interface SharedState {
  /** Epoch and last number of each producer. */
  readonly producers: Record<string, readonly [epoch: number, sequence: number]>
  producerCount: number
  streamSeq: string | undefined
  /** The producer that has closed it. */
  closedBy: Producer | undefined
  /** CRC-32 of its content. */
  checksum: number
  /** Last sign of life, for its time to live. */
  touchedMs: number
  /** `number:token` of the last messages. */
  readonly recent: string[]
}

/** More than a server writes until it sees the first of them. */
const MAX_RECENT = 64

/** @returns `undefined` without a mark: the stream has one writer. */
export function sharedStateOf(sequence: number, mark: string | undefined): SharedState | undefined {
  if (mark === undefined) return undefined
  const state: SharedState = {
    producers: Object.create(null) as SharedState['producers'],
    producerCount: 0,
    streamSeq: undefined,
    closedBy: undefined,
    checksum: 0,
    touchedMs: 0,
    recent: [],
  }
  tookMark(state, { sequence, isEnd: false }, mark)
  return state
}

/** Whether it is a state: another program may have written the roll-up that has it. */
export function isSharedState(value: unknown): value is SharedState {
  if (!isObject(value)) return false
  const { producers, producerCount, streamSeq, closedBy, checksum, touchedMs, recent } = value
  return (
    isObject(producers) &&
    Object.values(producers).every((numbers) => Array.isArray(numbers) && numbers.every(isNumber)) &&
    [producerCount, checksum, touchedMs].every(isNumber) &&
    (streamSeq === undefined || typeof streamSeq === 'string') &&
    (closedBy === undefined || isObject(closedBy)) &&
    Array.isArray(recent) &&
    recent.every((each) => typeof each === 'string')
  )
}

function isNumber(value: unknown): boolean {
  return typeof value === 'number'
}

/** Notes a message of the stream. @param taken `undefined`: it says only that the stream was read. */
export function tookMark(
  state: SharedState | undefined,
  taken: { readonly sequence: number; readonly isEnd: boolean } | undefined,
  mark: string | undefined,
): void {
  const parsed = mark === undefined ? undefined : parseMark(mark)
  if (state === undefined || parsed === undefined) return
  const { token, atMs, producer, streamSeq } = parsed
  state.touchedMs = Math.max(state.touchedMs, atMs)
  if (taken === undefined) return
  state.recent.push(`${taken.sequence}:${token}`)
  if (state.recent.length > MAX_RECENT) state.recent.shift()
  if (producer !== undefined) {
    if (state.producers[producer.id] === undefined) state.producerCount++
    state.producers[producer.id] = [producer.epoch, producer.sequence]
    if (taken.isEnd) state.closedBy = producer
  }
  state.streamSeq = streamSeq ?? state.streamSeq
}

/**
 * A state, which is not changed, and then what is known of the messages behind this number.
 * @param pieces Their content.
 */
export function sharedAfter(
  state: SharedState,
  number = 0,
  later?: SharedState,
  pieces: readonly (string | Uint8Array)[] = [],
): SharedState {
  const producers = Object.assign(Object.create(null) as SharedState['producers'], state.producers, later?.producers)
  const recent = later?.recent.filter((each) => Number.parseInt(each, 10) > number) ?? []
  return {
    producers,
    producerCount: Object.keys(producers).length,
    streamSeq: later?.streamSeq ?? state.streamSeq,
    closedBy: later?.closedBy ?? state.closedBy,
    checksum: pieces.reduce((checksum, piece) => crc32(piece, checksum), state.checksum),
    touchedMs: Math.max(state.touchedMs, later?.touchedMs ?? 0),
    recent: [...state.recent, ...recent].slice(-MAX_RECENT),
  }
}

/** Most bytes of a `Stream-Seq` as {@link formatMark} encodes it: a place of at most 255 bytes goes with each message. */
export const MAX_SEQ_BYTES = 128

/** Encodes a mark: fields with commas between. */
export function formatMark({ token, atMs, producer, streamSeq }: Mark): string {
  const fields: (string | number)[] = [token, atMs.toString(RADIX)]
  if (producer !== undefined || streamSeq !== undefined)
    fields.push(producer?.id ?? '', producer?.epoch ?? '', producer?.sequence ?? '')
  if (streamSeq !== undefined) fields.push(encodeURIComponent(streamSeq))
  return fields.join(',')
}

const RADIX = 36

/** @returns `undefined` for one of a later version. */
function parseMark(text: string): Mark | undefined {
  const [, token, time = '', id, epoch, sequence, streamSeq] =
    /^([\w-]+),([\da-z]{1,10})(?:,([\w-]*),(\d*),(\d*)(?:,([^,]*))?)?$/.exec(text) ?? []
  if (token === undefined) return undefined
  return {
    token,
    atMs: Number.parseInt(time, RADIX),
    producer: id ? { id, epoch: Number(epoch), sequence: Number(sequence) } : undefined,
    streamSeq: streamSeq === undefined ? undefined : decoded(streamSeq),
  }
}

/** Another program may have written it. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
