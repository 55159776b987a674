/** A position, read. */
export interface Place {
  readonly epoch: string
  readonly offset: number
}

/** As in [P-8.1]. */
const POSITION = /^([A-Za-z0-9_:.-]{1,52}):(0|[1-9a-z][0-9a-z]{0,10})\.[A-Za-z0-9_-]{5}$/
const MAX_POSITION_LENGTH = 70

/** @returns `undefined` for `-`, for a missing position, and for what is none. */
export function placeOf(position: string | undefined): Place | undefined {
  if (position === undefined || position.length > MAX_POSITION_LENGTH) return undefined
  const [, epoch, digits] = POSITION.exec(position) ?? []
  if (epoch === undefined || digits === undefined) return undefined
  const offset = Number.parseInt(digits, 36)
  return Number.isSafeInteger(offset) ? { epoch, offset } : undefined
}

/** Whether both are of one log, and the first is after the second. */
export function isAfter(place: Place, other: Place): boolean {
  return place.epoch === other.epoch && place.offset > other.offset
}

export function isSameEpoch(place: Place, other: Place): boolean {
  return place.epoch === other.epoch
}
