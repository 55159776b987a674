/** Part of a number that clients may use; the rest is left to the process itself. */
const CLIENTS_PART = 7 / 8
/** Part of it that one client may use. */
const CLIENT_PART = 1 / 16

/** How many one client may have where all have at most `max`. */
export function shareOf(max: number): number {
  return Math.floor(max * CLIENT_PART)
}

/**
 * Whether there is room for one more.
 * @param client `undefined`: it is for the process itself.
 * @param ownCount What this client has.
 * @param count What all have.
 */
export function hasRoom(max: number, client: string | undefined, ownCount: number, count: number): boolean {
  return client === undefined ? count < max : count < max * CLIENTS_PART && ownCount < shareOf(max)
}
