import { WebMQError } from 'webmq-client/protocol'
import type { Position } from './broker.js'

/** A position taken apart. */
export interface PositionParts {
  /** Names one life of a log; offsets of different epochs cannot be compared. */
  readonly epoch: string
  /** Place of a message in the log, from 1; 0 is the place before the first. */
  readonly offset: number
}

/** Joins what {@link parsePosition} takes apart. */
export function formatPosition(epoch: string, offset: number): Position {
  return `${epoch}:${offset}`
}

/**
 * Takes a position apart.
 * @throws {WebMQError} `E_POSITION_INVALID` when it is not `epoch:offset` with a decimal offset of at most 15 digits.
 */
export function parsePosition(position: Position): PositionParts {
  const colon = position.lastIndexOf(':')
  const epoch = position.slice(0, colon)
  const offset = position.slice(colon + 1)
  if (colon < 1 || !/^(?:0|[1-9]\d{0,14})$/.test(offset)) throw new WebMQError('E_POSITION_INVALID')
  return { epoch, offset: Number(offset) }
}

/** Whether a live message stands after a place in the log. A message of another epoch does: its epoch has just begun. */
export function isAfter(position: Position, place: Position): boolean {
  const message = parsePosition(position)
  const other = parsePosition(place)
  return message.epoch !== other.epoch || message.offset > other.offset
}
