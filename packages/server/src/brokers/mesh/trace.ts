/** Bytes of runs in each of the two parts that a trace has: at least 10,000 messages, many more when few nodes publish. */
const PART_BYTES = 32 * 1024
/** A run takes three numbers of 7 bytes at most. */
const MAX_RUN_BYTES = 21
/** Answers that are remembered: clients that lost their node come back at the same few places. */
const MAX_ANSWERS = 64

/** Of each origin, by its index, the sequence up to which its messages stand before a place. */
export type Vector = ReadonlyMap<number, number>

interface Part {
  readonly startOffset: number
  readonly start: Vector
  readonly bytes: Buffer
  length: number
}

/**
 * The order in which a node has logged the messages of all nodes, without the messages: so that a place in its log can be found in the log of
 * any other. Kept as runs of messages of one origin; the oldest are let go, at 64 KiB.
 */
export class Trace {
  #old: Part | undefined
  #part: Part
  #endOffset: number
  /** As far as the runs go. */
  readonly #end: Map<number, number>
  readonly #answers = new Map<number, Vector>()

  constructor(startOffset = 0, start: Vector = new Map()) {
    this.#part = newPart(startOffset, start)
    this.#endOffset = startOffset
    this.#end = new Map(start)
  }

  /** Place that the first run comes after. */
  get startOffset(): number {
    return (this.#old ?? this.#part).startOffset
  }

  get start(): Vector {
    return (this.#old ?? this.#part).start
  }

  get endOffset(): number {
    return this.#endOffset
  }

  /** All runs, as {@link TraceWriter} makes them. */
  get runs(): Buffer {
    return Buffer.concat([this.#old, this.#part].map((part) => part?.bytes.subarray(0, part.length) ?? NO_BYTES))
  }

  /**
   * Goes on with these runs.
   * @param indexOf The index here of an origin that they speak of.
   * @throws {RangeError} when they end in the middle of one.
   */
  push(runs: Uint8Array, indexOf: (origin: number) => number): void {
    const cursor = { at: 0 }
    while (cursor.at < runs.length) {
      const run = readRun(runs, cursor)
      const origin = indexOf(run.origin)
      const { skip, count } = run
      if (this.#part.length + MAX_RUN_BYTES > PART_BYTES) {
        this.#old = this.#part
        this.#part = newPart(this.#endOffset, new Map(this.#end))
      }
      this.#part.length = writeRun(this.#part.bytes, this.#part.length, origin, skip, count)
      this.#endOffset += count
      this.#end.set(origin, (this.#end.get(origin) ?? 0) + skip + count)
    }
  }

  /** What stands up to an offset; `undefined` when the trace does not go so far back, or so far on. Cost: O(runs), at most 32 KiB of them. */
  at(offset: number): Vector | undefined {
    if (offset > this.#endOffset || offset < this.startOffset) return undefined
    const known = this.#answers.get(offset)
    if (known !== undefined) return known
    const part = this.#old !== undefined && offset < this.#part.startOffset ? this.#old : this.#part
    const vector = new Map(part.start)
    const cursor = { at: 0 }
    let leftCount = offset - part.startOffset
    while (leftCount > 0) {
      const { origin, skip, count } = readRun(part.bytes, cursor)
      vector.set(origin, (vector.get(origin) ?? 0) + skip + Math.min(count, leftCount))
      leftCount -= count
    }
    if (this.#answers.size >= MAX_ANSWERS) this.#answers.clear()
    this.#answers.set(offset, vector)
    return vector
  }
}

const NO_BYTES = Buffer.alloc(0)

function newPart(startOffset: number, start: Vector): Part {
  return { startOffset, start, bytes: Buffer.allocUnsafeSlow(PART_BYTES), length: 0 }
}

/** Notes the order of messages, as runs: `origin * 2 + hasSkip`, the sequences that are skipped, if any, and the number of messages. */
export class TraceWriter {
  #bytes = Buffer.allocUnsafeSlow(1_024)
  #length = 0
  #origin = -1
  #skip = 0
  #count = 0

  /** @param skip Sequences of the origin between its last message and this one. */
  note(origin: number, skip: number): void {
    if (origin === this.#origin && skip === 0) {
      this.#count++
      return
    }
    this.#endRun()
    this.#origin = origin
    this.#skip = skip
    this.#count = 1
  }

  /** What was noted since the last call; empty when nothing was. Valid until the next message is noted. */
  take(): Uint8Array {
    this.#endRun()
    const runs = this.#bytes.subarray(0, this.#length)
    this.#length = 0
    return runs
  }

  #endRun(): void {
    if (this.#count === 0) return
    if (this.#length + MAX_RUN_BYTES > this.#bytes.length) {
      this.#bytes = Buffer.concat([this.#bytes], this.#bytes.length * 2)
    }
    this.#length = writeRun(this.#bytes, this.#length, this.#origin, this.#skip, this.#count)
    this.#origin = -1
    this.#count = 0
  }
}

function writeRun(bytes: Uint8Array, start: number, origin: number, skip: number, count: number): number {
  let at = writeNumber(bytes, start, origin * 2 + (skip > 0 ? 1 : 0))
  if (skip > 0) at = writeNumber(bytes, at, skip)
  return writeNumber(bytes, at, count)
}

/** Seven bits a byte, the lowest first; all but the last have the eighth set. */
function writeNumber(bytes: Uint8Array, start: number, value: number): number {
  let at = start
  let rest = value
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes[at++] = (rest % 0x80) | 0x80
  bytes[at++] = rest
  return at
}

function readRun(bytes: Uint8Array, cursor: { at: number }): { origin: number; skip: number; count: number } {
  const head = readNumber(bytes, cursor)
  const skip = head % 2 === 1 ? readNumber(bytes, cursor) : 0
  return { origin: Math.floor(head / 2), skip, count: readNumber(bytes, cursor) }
}

function readNumber(bytes: Uint8Array, cursor: { at: number }): number {
  let value = 0
  for (let factor = 1; factor < 2 ** 49; factor *= 0x80) {
    const byte = bytes[cursor.at++]
    if (byte === undefined) break
    value += (byte & 0x7f) * factor
    if (byte < 0x80) return value
  }
  throw new RangeError('a trace that breaks off')
}
