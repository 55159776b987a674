import type { Trace } from './trace.js'
import { readUint48, UINT48_BYTES, writeUint48 } from './uint48.js'

/** A life of a node, and what the sender has of its messages. */
export interface Holding {
  /** Its index with the sender: how it is called from here on. */
  readonly index: number
  /** 16 characters of `[0-9a-f]`. */
  readonly life: string
  readonly known: number
  readonly lost: number
}

const LIFE_BYTES = 8
const LIFE_AT = UINT48_BYTES
const KNOWN_AT = LIFE_AT + LIFE_BYTES
const LOST_AT = KNOWN_AT + UINT48_BYTES
const HOLDING_BYTES = LOST_AT + UINT48_BYTES

/** The body of a `have` frame. @param isFirst They are all that the sender has heard of; it comes once, when streams begin. */
export function encodeHoldings(holdings: readonly Holding[], isFirst: boolean): Buffer {
  const body = Buffer.alloc(1 + holdings.length * HOLDING_BYTES)
  body[0] = isFirst ? 1 : 0
  for (const [number, { index, life, known, lost }] of holdings.entries()) {
    const at = 1 + number * HOLDING_BYTES
    writeUint48(body, at, index)
    body.write(life, at + LIFE_AT, 'hex')
    writeUint48(body, at + KNOWN_AT, known)
    writeUint48(body, at + LOST_AT, lost)
  }
  return body
}

export function decodeHoldings(body: Buffer): { readonly isFirst: boolean; readonly holdings: readonly Holding[] } {
  const count = Math.floor((body.length - 1) / HOLDING_BYTES)
  const holdings = Array.from({ length: count }, (_, number) => {
    const at = 1 + number * HOLDING_BYTES
    return {
      index: readUint48(body, at),
      life: body.toString('hex', at + LIFE_AT, at + KNOWN_AT),
      known: readUint48(body, at + KNOWN_AT),
      lost: readUint48(body, at + LOST_AT),
    }
  })
  return { isFirst: body[0] === 1, holdings }
}

/** The body of a frame that is a list of lives, each with a sequence. */
export function encodeWants(wants: readonly { readonly life: string; readonly after: number }[]): Buffer {
  const body = Buffer.alloc(wants.length * (LIFE_BYTES + UINT48_BYTES))
  for (const [number, { life, after }] of wants.entries()) {
    const at = number * (LIFE_BYTES + UINT48_BYTES)
    body.write(life, at, 'hex')
    writeUint48(body, at + LIFE_BYTES, after)
  }
  return body
}

export function decodeWants(body: Buffer): { readonly life: string; readonly after: number }[] {
  return Array.from({ length: Math.floor(body.length / (LIFE_BYTES + UINT48_BYTES)) }, (_, number) => {
    const at = number * (LIFE_BYTES + UINT48_BYTES)
    return { life: body.toString('hex', at, at + LIFE_BYTES), after: readUint48(body, at + LIFE_BYTES) }
  })
}

/** The body of a frame that is a list of numbers. */
export function encodeNumbers(numbers: readonly number[]): Buffer {
  const body = Buffer.alloc(numbers.length * UINT48_BYTES)
  for (const [index, value] of numbers.entries()) writeUint48(body, index * UINT48_BYTES, value)
  return body
}

export function decodeNumbers(body: Buffer): number[] {
  return Array.from({ length: Math.floor(body.length / UINT48_BYTES) }, (_, index) =>
    readUint48(body, index * UINT48_BYTES),
  )
}

/** A trace as it is told whole. */
export interface ToldTrace {
  /** The life whose trace it is, by the sender's number. */
  readonly index: number
  readonly startOffset: number
  readonly endOffset: number
  /** The sender's number of an origin, and how far it had come at the start. */
  readonly start: readonly (readonly [index: number, sequence: number])[]
  readonly runs: Buffer
}

const TRACE_HEAD_NUMBERS = 4

/** The body of a `traceStart` frame. */
export function encodeTrace(index: number, { startOffset, endOffset, start, runs }: Trace): Buffer {
  return Buffer.concat([encodeNumbers([index, startOffset, endOffset, start.size, ...[...start].flat()]), runs])
}

/** `runs` is a view of the body. */
export function decodeTrace(body: Buffer): ToldTrace {
  const headBytes = TRACE_HEAD_NUMBERS * UINT48_BYTES
  const [index = 0, startOffset = 0, endOffset = 0, count = 0] = decodeNumbers(body.subarray(0, headBytes))
  const runsAt = Math.min(body.length, headBytes + 2 * count * UINT48_BYTES)
  const start = [...pairsOf(decodeNumbers(body.subarray(headBytes, runsAt)))]
  return { index, startOffset, endOffset, start, runs: body.subarray(runsAt) }
}

/** The numbers two by two. */
export function* pairsOf(numbers: readonly number[]): Generator<[number, number]> {
  for (let at = 0; at + 1 < numbers.length; at += 2) yield [numbers[at] ?? 0, numbers[at + 1] ?? 0]
}
