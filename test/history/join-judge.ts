import { type Drop, FLOOD_KEYS } from './flood.js'
import { isLater, type Place, placeOf } from './place.js'

/** What has gone wrong at the seam of replay and live. */
export interface JoinFaults {
  inversions: number
  duplicates: number
  misses: number
  /** Replayed messages behind live ones, or another number of them than was said. */
  disorders: number
}

/** How far a listener has come: the last number of each publisher and key. */
export type Progress = ReadonlyMap<string, number>

/** Looks at what one listener is given of a flood. */
export class JoinJudge {
  readonly #faults: JoinFaults
  readonly #last: Map<string, number>
  #place: Place | undefined
  position: string | undefined
  replayedCount = 0
  liveCount = 0

  /** @param progress Where a listener goes on that was there before. */
  constructor(faults: JoinFaults, progress: Progress = new Map()) {
    this.#faults = faults
    this.#last = new Map(progress)
  }

  get progress(): Progress {
    return this.#last
  }

  take(key: string, drop: Drop, position: string | undefined, isReplayed: boolean): void {
    const stream = `${drop.publisher} ${key}`
    const last = this.#last.get(stream)
    if (last !== undefined) {
      if (drop.number === last) this.#faults.duplicates++
      else if (drop.number < last) this.#faults.inversions++
      else this.#faults.misses += (drop.number - last) / FLOOD_KEYS.length - 1
    }
    this.#last.set(stream, Math.max(drop.number, last ?? 0))
    const place = placeOf(position)
    if (place && this.#place?.epoch === place.epoch && !isLater(place, this.#place)) this.#faults.inversions++
    this.#place = place
    this.position = position
    if (isReplayed) {
      this.replayedCount++
      if (this.liveCount > 0) this.#faults.disorders++
    } else this.liveCount++
  }

  /** @param expected Messages that the answers have promised to replay. */
  replayed(expected: number): void {
    if (this.replayedCount !== expected) this.#faults.disorders++
  }
}
