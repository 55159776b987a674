/** Consecutive messages of the log, as published on its channel. */
export interface LogBatch {
  readonly epoch: string
  readonly firstOffset: number
  readonly timeMs: number
  /** The messages, as {@link envelopesOf} reads them. */
  readonly bytes: Buffer
}

const NEWLINE = 0x0a
const HEAD = /^(\S+) (\d+) (\d+)$/
const LENGTH_BYTES = 4

/** Reads `<epoch> <first offset> <time>\n` and leaves the rest; `undefined` when the payload is something else. */
export function decodeLogBatch(payload: Buffer): LogBatch | undefined {
  const headEnd = payload.indexOf(NEWLINE)
  const [, epoch, firstOffset, timeMs] = HEAD.exec(payload.toString('latin1', 0, Math.max(0, headEnd))) ?? []
  if (epoch === undefined) return undefined
  const bytes = payload.subarray(headEnd + 1)
  return { epoch, firstOffset: Number(firstOffset), timeMs: Number(timeMs), bytes }
}

/** The envelopes of a batch, as views of its bytes. One that is cut short is left out. */
export function* envelopesOf({ bytes }: LogBatch): Generator<Buffer> {
  let at = 0
  while (at + LENGTH_BYTES <= bytes.length) {
    const start = at + LENGTH_BYTES
    at = start + bytes.readUInt32BE(at)
    if (at <= bytes.length) yield bytes.subarray(start, at)
  }
}
