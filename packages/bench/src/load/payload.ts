import type { Publication } from './key-plan.js'
import { createRandom, randomInteger } from './random.js'

/**
 * The payload of a message: enough to find its latency, loss, duplicates and order. Names are short, because they
 * count.
 */
export interface BenchPayload {
  readonly p: number
  /** Turn; negative in the warm-up. */
  readonly n: number
  /** Sequence of this publisher within this key. */
  readonly q: number
  /** Intended send time, microseconds after the start of the window. */
  readonly t: number
  readonly pad: string
}

/** The largest numbers of any run, so that every message can have exactly the requested size. */
const WIDEST: BenchPayload = { p: 9_999_999, n: -99_999_999, q: 99_999_999, t: -999_999_999_999, pad: '' }

/** Smallest message that holds these fields. */
export const MIN_MESSAGE_SIZE_BYTES = JSON.stringify(WIDEST).length

/** A payload's JSON without its digits and its padding. */
const BARE_BYTES = '{"p":,"n":,"q":,"t":,"pad":""}'.length

const PAD_ALPHABET = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-'

/** Makes the payloads of one worker, each exactly `sizeBytes` bytes of JSON. */
export class PayloadEncoder {
  readonly #sizeBytes: number
  /** As long as a payload; its start fills each payload up. */
  readonly padding: string

  /** @param sizeBytes At least {@link MIN_MESSAGE_SIZE_BYTES}. */
  constructor(sizeBytes: number, seed: number) {
    const random = createRandom(seed, 0x7ad)
    this.#sizeBytes = sizeBytes
    // Not one repeated character, which would compress to nothing and flatter a run with compression.
    this.padding = Array.from({ length: sizeBytes }, () => PAD_ALPHABET[randomInteger(random, 64)]).join('')
  }

  encode({ client, turn, keySequence, atUs }: Publication): BenchPayload {
    const t = Math.round(atUs)
    const bareBytes = bareBytesOf(client, turn, keySequence, t)
    return { p: client, n: turn, q: keySequence, t, pad: this.padding.slice(0, this.#sizeBytes - bareBytes) }
  }
}

export interface PayloadBounds {
  readonly clientCount: number
  /** No client takes more turns than this in the window. */
  readonly maxTurnCount: number
  readonly sizeBytes: number
}

/** The payload, or `undefined` when it is not one of this run or did not arrive whole. */
export function decodePayload(value: unknown, bounds: PayloadBounds): BenchPayload | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { p, n, q, t, pad } = value as Partial<Record<keyof BenchPayload, unknown>>
  if (!isInteger(p) || !isInteger(n) || !isInteger(q) || !isInteger(t) || typeof pad !== 'string') return undefined
  if (p < 0 || p >= bounds.clientCount || n >= bounds.maxTurnCount || q < 0 || q > Math.max(0, n)) return undefined
  return bareBytesOf(p, n, q, t) + pad.length === bounds.sizeBytes ? (value as BenchPayload) : undefined
}

/** Length of a payload without its padding. */
function bareBytesOf(p: number, n: number, q: number, t: number): number {
  return BARE_BYTES + digitCount(p) + digitCount(n) + digitCount(q) + digitCount(t)
}

/** Length of a safe integer in JSON. Arithmetic, because this runs for every delivery. */
function digitCount(integer: number): number {
  let count = integer < 0 ? 2 : 1
  for (let rest = Math.abs(integer); rest >= 10; rest = Math.floor(rest / 10)) count++
  return count
}

function isInteger(value: unknown): value is number {
  return Number.isSafeInteger(value)
}
