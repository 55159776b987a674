import { matches } from '../judging/keys.js'
import { isAfter, isSameEpoch, placeOf } from '../judging/place.js'

/** Where one listen of a client stands, as [P-8.6], [P-8.7] and [P-9.7] say. */
export class TrackedListen {
  readonly pattern: string
  /** What `since` is to say next. */
  position: string | undefined
  /** An `ok` without `more` has come, and all its replayed messages. */
  isLive = false

  constructor(pattern: string) {
    this.pattern = pattern
  }

  /** All replayed messages of an answer have come: only now its position counts. */
  completed(position: string | undefined, isMore: boolean): void {
    if (position !== undefined) this.position = position
    this.isLive = !isMore
  }

  replayed(position: string): void {
    if (position !== '-') this.position = position
  }

  /** A live message of any listen of the connection. */
  received(key: string, position: string): void {
    const place = placeOf(position)
    if (!this.isLive || place === undefined) return
    const own = placeOf(this.position)
    const isOwn = matches(this.pattern, key)
    const isOfThisLog = own !== undefined && isSameEpoch(place, own)
    // One that matches may begin another log, after a gap that says so. Others say nothing about a log not begun yet.
    if (isOfThisLog ? isAfter(place, own) : isOwn) this.position = position
  }

  /** `pong position=P` says the same as a live message that this listen does not match. */
  ponged(position: string): void {
    const [place, own] = [placeOf(position), placeOf(this.position)]
    if (this.isLive && place !== undefined && own !== undefined && isAfter(place, own)) this.position = position
  }
}
