import { isSeen } from './position.js'

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
    if (position === undefined) return true
    if (isSeen(position, this.position)) return false
    this.position = position
    return true
  }

  /** The app has loaded everything up to `position`. Counts only if that is known to be ahead. */
  skip(position: string | undefined): void {
    if (isSeen(this.position, position)) this.position = position
  }

  /** The listen is live. @param latest Position of the connection's last live message before. */
  live(latest: string | undefined): void {
    this.wasLive = true
    this.#latestBefore = latest
  }

  /** Where to continue while the listen is live. @param latest Position of the connection's last live message. */
  at(latest: string | undefined): string | undefined {
    return latest !== this.#latestBefore && isSeen(this.position, latest) ? latest : this.position
  }

  /** The position belongs to a lost log: the next listen begins live, with a gap. */
  lost(): void {
    this.position = undefined
    this.wasLive = true
  }
}
