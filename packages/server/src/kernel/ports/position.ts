import { formatFingerprint, formatOffset, parsePosition as read, WebMQError } from 'webmq-client/protocol'
import type { Position } from './broker.js'

/** Offsets that differ only in their last two digits share a prefix, so a position per message costs no division. */
const BLOCK = 36 * 36
const LAST_DIGITS = Array.from({ length: BLOCK }, (_, offset) => formatOffset(offset).padStart(2, '0'))

/** A fingerprint is written from tables: the highest 6 bits, then twice 12. */
const LOW_BITS = 12
const LOW_MASK = 2 ** LOW_BITS - 1
const PAIRS = Array.from({ length: 2 ** LOW_BITS }, (_, bits) => formatFingerprint(bits).slice(3))
const DIGITS = Array.from({ length: 64 }, (_, bits) => `.${formatFingerprint(bits).slice(4)}`)

let blockEpoch = ''
let blockNumber = -1
let blockText = ''

/** A position as applications and clients see it: `epoch:offset.fingerprint` [P-8.1]. */
export function formatPosition({ epoch, offset, fingerprint }: Position): string {
  const high = fingerprint >>> LOW_BITS
  return placeText(epoch, offset) + DIGITS[high >>> LOW_BITS] + PAIRS[high & LOW_MASK] + PAIRS[fingerprint & LOW_MASK]
}

function placeText(epoch: string, offset: number): string {
  if (offset < BLOCK) return `${epoch}:${formatOffset(offset)}`
  const number = Math.floor(offset / BLOCK)
  if (number !== blockNumber || epoch !== blockEpoch) {
    blockEpoch = epoch
    blockNumber = number
    blockText = `${epoch}:${formatOffset(number)}`
  }
  return blockText + LAST_DIGITS[offset - number * BLOCK]
}

/**
 * The position that a text says. Joined positions, which an earlier server gave, become one of an epoch that no log has;
 * one without a fingerprint becomes one that no log has: whoever returns with it is told a gap.
 * @throws {WebMQError} `E_POSITION_INVALID` when it is not `epoch:offset.fingerprint`.
 */
export function parsePosition(text: string): Position {
  if (typeof text === 'string' && text.includes(',')) return { epoch: ',', offset: 0, fingerprint: 0 }
  const position = read(text)
  if (position === undefined) throw new WebMQError('E_POSITION_INVALID')
  return position
}

/** Whether a live message comes after a position. A message of another epoch does: its epoch has just begun. */
export function isAfter(position: Position, other: Position): boolean {
  return position.epoch !== other.epoch || position.offset > other.offset
}
