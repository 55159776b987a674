import type { MaybePromise } from './maybe-promise.js'

/** Counts the work that the requests of a connection cause. One unit is about a microsecond of one core. */
export interface WorkMeter {
  /**
   * Notes work that was done.
   * @returns A promise when the connection has used up its share: go on when it has resolved. It never rejects, and it
   *   resolves when the connection closes.
   */
  spend(units: number): MaybePromise<void>
}
