import type { LoadResult } from './messages.js'
import type { Window } from './receiver.js'

/** Sums over all clients at this moment. */
export interface LoadTotals {
  readonly connectedCount: number
  readonly publishedCount: number
  readonly deliveredCount: number
  /** All arrivals, including duplicates and the warm-up. */
  readonly arrivedCount: number
  readonly isSendingDone: boolean
}

/** The clients of a run, whatever plays them. */
export interface Load {
  readonly failed: Promise<never>
  readonly totals: LoadTotals
  /** Resolves when every client is connected and every listen confirmed. */
  ready(): Promise<void>
  begin(window: Window): Promise<void>
  /** CPU time used so far by the processes that play the clients. */
  cpuSeconds(): Promise<number>
  finish(): Promise<LoadResult[]>
  stop(): Promise<void>
}
