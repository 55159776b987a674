import type { MaybePromise } from '../base/maybe-promise.js'

/** Counts the work that the requests of a connection cause. One unit is about a microsecond of one core. */
export interface WorkMeter {
  /** Notes work that was done. */
  charge(units: number): void
  /**
   * The same, for work that goes on.
   * @returns A promise when the connection has used up its share: go on when it has resolved. It never rejects, and it
   *   resolves when the connection closes.
   */
  spend(units: number): MaybePromise<void>
}

/** Connections that wait because they have caused too much work. Counters since the start; gauges at the time of the call. */
export interface WorkStats {
  /** Connections that are not being read at present. */
  readonly pausedCount: number
  /** How often reading from a connection was paused. */
  readonly pauseCount: number
  /** Memory of messages that wait for the turn of their connection. */
  readonly backlogBytes: number
}
