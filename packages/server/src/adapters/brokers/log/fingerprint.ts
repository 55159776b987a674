import type { LinkSource } from '../remote/link.js'

/*
 * A fingerprint is a hash of what the broker stores of a record of the log: 30 bits, never 0. It must stay as it is from
 * version to version: clients come back with fingerprints that an earlier one has given. It is no protection against
 * somebody who looks for a second record with the same one.
 *
 * The rounds are those of MurmurHash3 for 32 bits.
 */
const C1 = 0xcc9e2d51
const C2 = 0x1b873593
const SPARE_BITS = 2

function mixed(hash: number, word: number): number {
  let bits = Math.imul(word, C1)
  bits = Math.imul((bits << 15) | (bits >>> 17), C2) ^ hash
  return (Math.imul((bits << 13) | (bits >>> 19), 5) + 0xe6546b64) | 0
}

/** A safe integer, as two words. */
function mixedNumber(hash: number, number: number): number {
  return mixed(mixed(hash, Math.floor(number / 2 ** 32)), number | 0)
}

function mixedText(hash: number, text: string): number {
  let bits = mixed(hash, text.length)
  for (let at = 0; at < text.length; at++) bits = mixed(bits, text.charCodeAt(at))
  return bits
}

function finished(hash: number): number {
  let bits = hash ^ (hash >>> 16)
  bits = Math.imul(bits, 0x85ebca6b)
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35)
  return (bits ^ (bits >>> 16)) >>> SPARE_BITS || 1
}

/** Kinds of records begin with different hashes. */
const SEEDS = { message: 1, foreign: 2, time: 3, text: 4, place: 5 }

/** Known nodes; all are forgotten together. */
const MAX_NODES = 1_024
const nodeHashes = new Map<string, number>()
/** Most messages come from the same node as the one before. */
let lastNode = ''
let lastNodeHash = 0

function hashOfNode(node: string): number {
  if (node === lastNode) return lastNodeHash
  let hash = nodeHashes.get(node)
  if (hash === undefined) {
    hash = mixedText(SEEDS.message, node)
    if (nodeHashes.size >= MAX_NODES) nodeHashes.clear()
    nodeHashes.set(node, hash)
  }
  lastNode = node
  lastNodeHash = hash
  return hash
}

/**
 * Fingerprint of a message of a node.
 * @param timeMs When the broker, or the node, says that it was logged: Unix time in milliseconds.
 */
export function fingerprintOfSource({ node, sequence }: Pick<LinkSource, 'node' | 'sequence'>, timeMs: number): number {
  return finished(mixedNumber(mixedNumber(hashOfNode(node), sequence), timeMs))
}

/** What tells a record of another program from others. */
export interface ForeignRecord {
  /** Empty when it tells none. */
  readonly key: string
  readonly messageId?: string | undefined
  readonly payload: Uint8Array
  /** 0 when nothing tells it: equal messages then have the same fingerprint. */
  readonly timeMs: number
}

/** Bytes of a payload that count, at its beginning and at its end. */
const SAMPLE_BYTES = 64

export function fingerprintOfForeign({ key, messageId = '', payload, timeMs }: ForeignRecord): number {
  const { length } = payload
  let hash = mixedNumber(SEEDS.foreign, timeMs)
  hash = mixed(mixedText(mixedText(hash, key), messageId), length)
  const headEnd = Math.min(length, SAMPLE_BYTES)
  for (let at = 0; at < headEnd; at++) hash = mixed(hash, payload[at] ?? 0)
  for (let at = Math.max(headEnd, length - SAMPLE_BYTES); at < length; at++) hash = mixed(hash, payload[at] ?? 0)
  return finished(hash)
}

/** Fingerprint of a record that its time identifies: seconds and nanoseconds of Unix time. */
export function fingerprintOfTime(seconds: number, nanoseconds: number): number {
  return finished(mixed(mixedNumber(SEEDS.time, seconds), nanoseconds))
}

export function fingerprintOfText(text: string): number {
  return finished(mixedText(SEEDS.text, text))
}

/** Fingerprint of a record of a log in memory: nothing else is ever at its offset. */
export function fingerprintOfPlace(offset: number, timeMs: number): number {
  return finished(mixedNumber(mixedNumber(SEEDS.place, offset), timeMs))
}
