import { isSeen, type ParsedPosition } from './position.js'

/**
 * Where a subscription continues after a reconnect: everything up to here was handled.
 *
 * A live subscription may also have passed messages of other patterns. The last live message of the connection then says
 * more than its own last one [P-8.7], but only when it came after the listen was live.
 */
export class ResumePoint {
  /** Everything up to here was handled, or need not be; `undefined` when that is not known. */
  position: ParsedPosition | undefined
  /** The last live message of the connection when the listen became live: it says nothing about this listen. */
  #latestBefore: ParsedPosition | undefined
  /** Whether the listen was ever live: from then on, not knowing where to continue from is a gap. */
  wasLive = false

  constructor(position?: ParsedPosition) {
    this.position = position
  }

  /** Everything up to `position` is handled now. Returns `false`, and changes nothing, when it was before. */
  advance(position: ParsedPosition | undefined): boolean {
    const isNew = !isSeen(position, this.position)
    if (isNew && position) this.position = position
    return isNew
  }

  /** The app has loaded everything up to `position`. Counts only when that is known to be ahead. */
  catchUp(position: ParsedPosition | undefined): void {
    if (isSeen(this.position, position)) this.position = position
  }

  /** The listen is live. @param latest Position of the last live message of the connection before. */
  live(latest: ParsedPosition | undefined): void {
    this.wasLive = true
    this.#latestBefore = latest
  }

  /** Where to continue while the listen is live. @param latest Position of the last live message of the connection. */
  at(latest: ParsedPosition | undefined): ParsedPosition | undefined {
    return latest !== this.#latestBefore && isSeen(this.position, latest) ? latest : this.position
  }

  /** The position is of a log that nobody can read any more: the next listen begins live, with a gap. */
  lose(): void {
    this.position = undefined
    this.wasLive = true
  }
}
