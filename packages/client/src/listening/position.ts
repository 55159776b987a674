import { parseOffset } from '../protocol/index.js'

/** A position taken apart once, to be compared often. */
export interface ParsedPosition {
  readonly text: string
  readonly epoch: string
  /** `NaN` when it is not a number; such positions have no order. */
  readonly offset: number
}

/** Takes `epoch:offset` apart [P-8.1], if there is any. */
export function parsePosition(text: string | undefined): ParsedPosition | undefined {
  if (text === undefined) return undefined
  const colon = text.lastIndexOf(':')
  return { text, epoch: text.slice(0, colon), offset: parseOffset(text.slice(colon + 1)) ?? Number.NaN }
}

/** Whether a message at `position` has been seen by someone who has seen all up to `seen`. Unknown counts as no. */
export function isSeen(position: ParsedPosition | undefined, seen: ParsedPosition | undefined): boolean {
  return (
    position !== undefined &&
    seen !== undefined &&
    (position.text === seen.text || (position.epoch === seen.epoch && position.offset <= seen.offset))
  )
}
