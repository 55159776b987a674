import { parsePosition } from 'webmq-client/protocol'

/** A position, taken apart. */
export interface Place {
  readonly epoch: string
  readonly offset: number
}

/** Takes a position apart [P-8.1]; `undefined` when there is none, or it has another form. */
export function placeOf(position: string | undefined): Place | undefined {
  return position === undefined ? undefined : parsePosition(position)
}

/** Whether the first of two places in one epoch comes after the second. */
export function isLater(first: Place, second: Place): boolean {
  return first.offset > second.offset
}
