import { parseOffset } from 'webmq-client/protocol'

/** A position, taken apart. */
export interface Place {
  readonly epoch: string
  readonly offset: number
}

/** Takes `epoch:offset` apart [P-8.1]; `undefined` when there is none, or its offset is no number. */
export function placeOf(position: string | undefined): Place | undefined {
  if (position === undefined) return undefined
  const colon = position.lastIndexOf(':')
  const offset = parseOffset(position.slice(colon + 1))
  return offset === undefined ? undefined : { epoch: position.slice(0, colon), offset }
}

/** Whether the first of two places in one epoch comes after the second. */
export function isLater(first: Place, second: Place): boolean {
  return first.offset > second.offset
}
