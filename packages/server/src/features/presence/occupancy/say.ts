import { isPattern } from 'webmq-client/protocol'
import { isCount } from '../../nodes/index.js'
import type { Fact } from './fact.js'

/** What one node says of a pattern. */
export interface Say {
  /** The pattern, or `''` for the fleet. */
  readonly id: string
  readonly node: string
  /** A connection of the node listens with the pattern. */
  readonly isListened: boolean
  /** Present on the node that tells the backend of the pattern. */
  readonly fact: Fact | undefined
}

const LISTENED = 1
const OCCUPIED = 2
const REPORTED = 4

/** A say as JSON: the pattern, bits, and the generation of the fact; 0 without one. */
export function sayText(pattern: string, isListened: boolean, fact: Fact | undefined): string {
  const bits = (isListened ? LISTENED : 0) | (fact?.isOccupied ? OCCUPIED : 0) | (fact?.isReported ? REPORTED : 0)
  return JSON.stringify([pattern, bits, fact?.generation ?? 0])
}

/** Reads what {@link sayText} wrote; `undefined` for anything else. */
export function sayFrom(item: unknown, node: string): Say | undefined {
  if (!Array.isArray(item)) return undefined
  const [id, bits, generation] = item as unknown[]
  if (typeof id !== 'string' || !(id === '' || isPattern(id)) || !isCount(bits) || !isCount(generation))
    return undefined
  const has = (bit: number) => (bits & bit) !== 0
  const fact = generation === 0 ? undefined : { isOccupied: has(OCCUPIED), generation, isReported: has(REPORTED) }
  return { id, node, isListened: has(LISTENED), fact }
}
