import { parseOffset } from '../protocol/index.js'

/** A parsed position, for repeated comparison. */
export interface ParsedPosition {
  readonly text: string
  readonly epoch: string
  /** `NaN` if it is not a number; such positions have no order. */
  readonly offset: number
}

/** Parses `epoch:offset` [P-8.1]. */
export function parsePosition(text: string | undefined): ParsedPosition | undefined {
  if (text === undefined) return undefined
  const colon = text.lastIndexOf(':')
  return { text, epoch: text.slice(0, colon), offset: parseOffset(text.slice(colon + 1)) ?? Number.NaN }
}

/** Whether a message at `position` is included in everything up to `seen`. If either is unknown: no. */
export function isSeen(position: ParsedPosition | undefined, seen: ParsedPosition | undefined): boolean {
  return (
    position !== undefined &&
    seen !== undefined &&
    (position.text === seen.text || (position.epoch === seen.epoch && position.offset <= seen.offset))
  )
}
