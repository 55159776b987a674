/** What stands at an offset of the log instead of a message. */
export interface LogFence {
  /** The last offset before it. */
  readonly after: number
  /** Whether the log still has everything that it had when the fence was put up. */
  readonly isComplete: boolean
}

/** Consecutive messages of the log, or a fence, as published on its channel. */
export interface LogBatch {
  readonly epoch: string
  readonly firstOffset: number
  readonly timeMs: number
  /** The batch is a fence at `firstOffset`. */
  readonly fence: LogFence | undefined
  /** The messages, as {@link envelopesOf} reads them. */
  readonly bytes: Buffer
}

const NEWLINE = 0x0a
const HEAD = /^(\S+) (\d+) (\d+)(?: (\d+ [01]))?$/
const FENCE = /^(\d+) ([01])$/
const LENGTH_BYTES = 4

/** Reads `<epoch> <first offset> <time>[ <fence>]\n` and leaves the rest; `undefined` for any other payload. */
export function decodeLogBatch(payload: Buffer): LogBatch | undefined {
  const headEnd = payload.indexOf(NEWLINE)
  const [, epoch, firstOffset, timeMs, fence = ''] =
    HEAD.exec(payload.toString('latin1', 0, Math.max(0, headEnd))) ?? []
  if (epoch === undefined) return undefined
  const bytes = payload.subarray(headEnd + 1)
  return { epoch, firstOffset: Number(firstOffset), timeMs: Number(timeMs), fence: decodeFence(fence), bytes }
}

/** Reads `<offset before> <0 or 1>`; `undefined` for any other text. */
export function decodeFence(text: string): LogFence | undefined {
  const [, after, isComplete] = FENCE.exec(text) ?? []
  return after === undefined ? undefined : { after: Number(after), isComplete: isComplete === '1' }
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
