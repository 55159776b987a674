import { formatOffset, isPosition, parseOffset, partitionOf, WebMQError } from 'webmq-client/protocol'
import type { InboundMessage, Position } from './broker.js'

/** Offsets that differ only in their last two digits share a prefix, so a position per message costs no division. */
const BLOCK = 36 * 36
const LAST_DIGITS = Array.from({ length: BLOCK }, (_, offset) => formatOffset(offset).padStart(2, '0'))

let blockEpoch = ''
let blockNumber = -1
let blockText = ''

/** A position as applications and clients see it: `epoch:offset` [P-8.1], or several of them joined by `,` [P-8.10]. */
export function formatPosition(position: Position): string {
  return position.others === undefined ? formatOne(position) : partsOf(position).map(formatOne).join(',')
}

function formatOne({ epoch, offset }: Position): string {
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
 * The position that a text says.
 * @throws {WebMQError} `E_POSITION_INVALID` when it is not `epoch:offset`, or several of them with a partition each.
 */
export function parsePosition(text: string): Position {
  const texts = text.split(',')
  if (texts.length === 1) return parseOne(text)
  // Also of a caller inside the process, whose text nobody has checked.
  if (!isPosition(text)) throw new WebMQError('E_POSITION_INVALID')
  const parts = texts.map(parseOne)
  const partitions = parts.map(({ epoch }) => partitionOf(epoch))
  if (partitions.includes(undefined) || new Set(partitions).size < parts.length)
    throw new WebMQError('E_POSITION_INVALID')
  return joinPositions(parts) as Position
}

function parseOne(text: string): Position {
  const colon = text.lastIndexOf(':')
  const offset = parseOffset(text.slice(colon + 1))
  if (colon < 1 || offset === undefined) throw new WebMQError('E_POSITION_INVALID')
  return { epoch: text.slice(0, colon), offset }
}

/** The places of a position, one per partition. */
function partsOf({ epoch, offset, others = [] }: Position): readonly Position[] {
  return [{ epoch, offset }, ...others]
}

/** One position of places in different partitions; `undefined` without any. */
export function joinPositions(parts: readonly Position[]): Position | undefined {
  const [first, ...others] = parts
  return first === undefined || others.length === 0 ? first : { ...first, others }
}

/** The place in the partition of another position; `undefined` when there is none. */
function partBeside(position: Position, { epoch }: Position): Position | undefined {
  const partition = partitionOf(epoch)
  return partsOf(position).find((part) => partitionOf(part.epoch) === partition)
}

/**
 * The place in a partition. A position of a log without partitions is one in each: it comes from another system, as its
 * epoch tells. `undefined` when the position names other partitions alone.
 */
export function placeIn(position: Position, partition: number): Position | undefined {
  const parts = partsOf(position)
  const place = parts.find(({ epoch }) => partitionOf(epoch) === `${partition}.`)
  return place ?? (partitionOf(position.epoch) === undefined ? parts[0] : undefined)
}

/** The same position, but before these messages, which follow each other in each partition. */
export function beforeMessages(position: Position, messages: readonly InboundMessage[]): Position {
  const places = new Map(partsOf(position).map((place) => [partitionOf(place.epoch), place]))
  for (const { position: at } of messages.toReversed())
    if (at !== undefined) places.set(partitionOf(at.epoch), { epoch: at.epoch, offset: at.offset - 1 })
  return joinPositions([...places.values()]) as Position
}

/** The same position, moved to a place in one partition. */
export function movedTo(position: Position, place: Position): Position {
  if (position.others === undefined && partBeside(position, place) !== undefined) return place
  const partition = partitionOf(place.epoch)
  if (partition === undefined) return place
  const others = partsOf(position).filter(({ epoch }) => ![partition, undefined].includes(partitionOf(epoch)))
  return joinPositions([place, ...others]) as Position
}

/**
 * Whether a live message comes after a position. A message of another epoch does: its epoch has just begun. So does one of
 * a partition in which the position has no place.
 */
export function isAfter(position: Position, other: Position): boolean {
  const place = other.others === undefined ? other : partBeside(other, position)
  return place === undefined || position.epoch !== place.epoch || position.offset > place.offset
}
