import { moved } from './position.js'

/**
 * Where a subscription continues after a reconnect: everything up to here was handled.
 *
 * Live messages of other patterns move it too. If the connection's last live message came after the listen was live, it
 * is more recent than the listen's own last message [P-8.7].
 */
export class ResumePoint {
  /** Everything up to here was handled, or is not needed; `undefined` if unknown. */
  position: string | undefined
  /** The connection's last live message when the listen became live: it says nothing about this listen. */
  #latestBefore: string | undefined
  /** Whether the listen was ever live. From then on, an unknown position is a gap. */
  wasLive = false

  constructor(position?: string) {
    this.position = position
  }

  /** Everything up to `position` is handled now. Returns `false`, and changes nothing, if it was handled before. */
  advance(position: string | undefined): boolean {
    const before = this.position
    this.position = moved(before, position)
    return position === undefined || this.position !== before
  }

  /** The app has loaded everything up to `position`. Counts only if that is known to be ahead. */
  catchUp(position: string | undefined): void {
    this.position = moved(this.position, position, true)
  }

  /** The listen is live. @param latest Position of the connection's last live message before. */
  live(latest: string | undefined): void {
    this.wasLive = true
    this.#latestBefore = latest
  }

  /** Where to continue while the listen is live. @param latest Position of the connection's last live message. */
  at(latest: string | undefined): string | undefined {
    // As text: a place that looks like the start of another counts as unknown, which loses nothing.
    const later = latest?.split(',').filter((place) => !this.#latestBefore?.includes(place))
    return moved(this.position, later?.join(), true)
  }

  /** The position belongs to a lost log: the next listen begins live, with a gap. */
  lose(): void {
    this.position = undefined
    this.wasLive = true
  }
}
