import { formatOffset, parseOffset, WebMQError } from 'webmq-client/protocol'
import type { Position } from './broker.js'

/** Offsets that differ only in their last two digits share a prefix, so a position per message costs no division. */
const BLOCK = 36 * 36
const LAST_DIGITS = Array.from({ length: BLOCK }, (_, offset) => formatOffset(offset).padStart(2, '0'))

let blockEpoch = ''
let blockNumber = -1
let blockText = ''

/** A position as applications and clients see it: `epoch:offset` [P-8.1]. */
export function formatPosition({ epoch, offset }: Position): string {
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
 * The position that a text says. Joined positions, which an earlier server gave, become one of an epoch that no log has:
 * whoever returns with it is told a gap.
 * @throws {WebMQError} `E_POSITION_INVALID` when it is not `epoch:offset`.
 */
export function parsePosition(text: string): Position {
  if (text.includes(',')) return { epoch: ',', offset: 0 }
  const colon = text.lastIndexOf(':')
  const offset = parseOffset(text.slice(colon + 1))
  if (colon < 1 || offset === undefined) throw new WebMQError('E_POSITION_INVALID')
  return { epoch: text.slice(0, colon), offset }
}

/** Whether a live message comes after a position. A message of another epoch does: its epoch has just begun. */
export function isAfter(position: Position, other: Position): boolean {
  return position.epoch !== other.epoch || position.offset > other.offset
}
