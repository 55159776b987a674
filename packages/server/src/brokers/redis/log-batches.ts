import { endOfLine, numberAt } from './resp-frames.js'

/** A run of messages of the log, as its channel brings them. */
export interface LogBatch {
  readonly epoch: string
  readonly firstOffset: number
  readonly timeMs: number
  /** The messages, as {@link envelopesOf} reads them. */
  readonly bytes: Buffer
  readonly start: number
  readonly end: number
}

const SPACE = 0x20
const LENGTH_BYTES = 4

/** Reads `<epoch> <first offset> <time>\n` and leaves the rest; `undefined` when it is something else. */
export function decodeLogBatch(bytes: Buffer, start: number, end: number): LogBatch | undefined {
  const lineEnd = endOfLine(bytes, start)
  const epochEnd = bytes.indexOf(SPACE, start)
  const offsetEnd = bytes.indexOf(SPACE, epochEnd + 1)
  if (lineEnd > end || epochEnd < 0 || offsetEnd < 0 || offsetEnd >= lineEnd) return undefined
  return {
    epoch: bytes.toString('latin1', start, epochEnd),
    firstOffset: numberAt(bytes, epochEnd + 1),
    timeMs: numberAt(bytes, offsetEnd + 1),
    bytes,
    start: lineEnd,
    end,
  }
}

/** Where each envelope of a batch begins and ends. What is cut short is left out. */
export function* envelopesOf({ bytes, start, end }: LogBatch): Generator<readonly [start: number, end: number]> {
  let at = start
  while (at + LENGTH_BYTES <= end) {
    const from = at + LENGTH_BYTES
    at = from + bytes.readUInt32BE(at)
    if (at <= end) yield [from, at]
  }
}
