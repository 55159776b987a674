const NEWLINE = 0x0a
const MINUS = 0x2d
const ZERO = 0x30

/**
 * Cuts what comes from a Redis into frames, of RESP 2 and 3, and keeps the beginning of one whose end has not come.
 * The values in them are not decoded: where they are not needed, that costs more than everything else about a message.
 */
export class RespFrames {
  readonly #take: (bytes: Buffer, start: number, end: number) => void
  #chunks: Buffer[] = []
  #keptBytes = 0
  /** How much there must be, at least, for the frame to be complete. */
  #neededBytes = 0

  /** @param take Gets each frame; the bytes are borrowed. */
  constructor(take: (bytes: Buffer, start: number, end: number) => void) {
    this.#take = take
  }

  readonly write = (chunk: Buffer): void => {
    let bytes = chunk
    if (this.#keptBytes > 0) {
      this.#chunks.push(chunk)
      this.#keptBytes += chunk.length
      // Not put together for each chunk of a large one, which would copy it again and again.
      if (this.#keptBytes < this.#neededBytes) return
      bytes = Buffer.concat(this.#chunks, this.#keptBytes)
      this.#chunks = []
      this.#keptBytes = 0
    }
    let start = 0
    while (start < bytes.length) {
      const end = frameEnd(bytes, start)
      if (end > bytes.length) {
        this.#keep(bytes.subarray(start), end - start)
        return
      }
      this.#take(bytes, start, end)
      start = end
    }
  }

  #keep(rest: Buffer, neededBytes: number): void {
    this.#chunks = [rest]
    this.#keptBytes = rest.length
    this.#neededBytes = neededBytes
  }
}

/** Where the frame ends that begins at `start`; beyond the bytes when it is not complete, as far as is known. */
function frameEnd(bytes: Buffer, start: number): number {
  let at = start
  for (let valueCount = 1; valueCount > 0; valueCount--) {
    const lineEnd = endOfLine(bytes, at + 1)
    if (lineEnd > bytes.length) return lineEnd
    switch (bytes[at]) {
      // Bytes: text, verbatim text, error.
      case 0x24: // $
      case 0x3d: // =
      case 0x21: {
        const length = numberAt(bytes, at + 1)
        at = length < 0 ? lineEnd : lineEnd + length + 2
        break
      }
      case 0x2a: // *
      case 0x3e: // >
      case 0x7e: // ~
        valueCount += Math.max(0, numberAt(bytes, at + 1))
        at = lineEnd
        break
      case 0x25: // %
        valueCount += 2 * numberAt(bytes, at + 1)
        at = lineEnd
        break
      case 0x7c: // |: attributes of the value that follows
        valueCount += 2 * numberAt(bytes, at + 1) + 1
        at = lineEnd
        break
      default:
        at = lineEnd
    }
    if (at > bytes.length) return at
  }
  return at
}

/** After the next newline; one beyond the bytes when it has not come. */
export function endOfLine(bytes: Buffer, start: number): number {
  let at = start
  while (at < bytes.length && bytes[at] !== NEWLINE) at++
  return at + 1
}

/** The decimal number that stands there. */
export function numberAt(bytes: Buffer, start: number): number {
  const isNegative = bytes[start] === MINUS
  let at = isNegative ? start + 1 : start
  let value = 0
  for (let digit = (bytes[at] ?? 0) - ZERO; digit >= 0 && digit <= 9; digit = (bytes[++at] ?? 0) - ZERO) {
    value = value * 10 + digit
  }
  return isNegative ? -value : value
}
