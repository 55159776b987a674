/** Units of all connections in one round, between two looks at the sockets: about two milliseconds. */
export const ROUND_UNITS = 2_000
/** Units of one turn, about half a millisecond. */
export const TURN_UNITS = 500
/** Units are estimates: code that is not compiled yet takes up to 40 times as long. A round never lasts much longer. */
export const MAX_ROUND_MS = 2
/** Units after which the clock is read. */
const LOOK_UNITS = 50

/** What connections that take turns may use. */
export class Pace {
  /** Units of one turn. Behind it, the messages of the connection wait for everybody else's. */
  turnUnits = TURN_UNITS
  /** Units that all connections have used in this round. */
  #units = 0
  readonly #now: () => number
  /** Used units at which the clock is read. */
  #lookUnits = LOOK_UNITS
  /** When the present call of the event loop used the first units, or soon after. */
  #startMs: number | undefined

  /** @param now A monotonic clock, in milliseconds. */
  constructor(now: () => number) {
    this.#now = now
  }

  /** The units of the round are used up, or it lasts too long. */
  get isRoundOver(): boolean {
    return this.#units >= ROUND_UNITS
  }

  charge(units: number): void {
    this.#units += units
    if (this.#units >= this.#lookUnits) this.#look()
  }

  beginRound(): void {
    this.#units = 0
    this.#lookUnits = LOOK_UNITS
  }

  #look(): void {
    const nowMs = this.#now()
    if (this.#startMs === undefined) {
      this.#startMs = nowMs
      queueMicrotask(this.#ended)
    } else if (nowMs - this.#startMs >= MAX_ROUND_MS) this.#units = Math.max(this.#units, ROUND_UNITS)
    this.#lookUnits = this.#units + LOOK_UNITS
  }

  readonly #ended = (): void => {
    this.#startMs = undefined
  }
}
