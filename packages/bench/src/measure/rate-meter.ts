/** Window of a rate: shorter ones flicker, longer ones lag. */
const WINDOW_MS = 2_000

/** The rate at which a count grows now, from readings of the count. */
export class RateMeter {
  readonly #readings: { readonly atMs: number; readonly count: number }[] = []

  /**
   * Takes a reading and says how many per second the last two seconds had; `null` while there is only one.
   * @param atMs On any clock, never backwards.
   * @param count Since the start; a smaller one than before restarts the meter.
   */
  read(atMs: number, count: number): number | null {
    const last = this.#readings.at(-1)
    if (last !== undefined && count < last.count) this.#readings.length = 0
    this.#readings.push({ atMs, count })
    // The oldest reading is at the window's start or just before it, so the list stays short.
    while ((this.#readings[1]?.atMs ?? Number.POSITIVE_INFINITY) <= atMs - WINDOW_MS) this.#readings.shift()
    const first = this.#readings[0]
    return first === undefined || first.atMs === atMs ? null : ((count - first.count) * 1_000) / (atMs - first.atMs)
  }
}
