import type { KeyPlanOptions } from '../load/key-plan.js'

/** Command and answers of the played clients; `packages/bench/loadgen/README.md` explains every field. */
export interface PlayedClientsPlan {
  readonly plan: KeyPlanOptions
  readonly messageSizeBytes: number
  /** Client `c` connects to entry `c % length`, on 127.0.0.1. */
  readonly ports: readonly number[]
  readonly path: string
  /** Beginning of every key, without its dot. */
  readonly keyPrefix: string
  readonly threads: number
}

/** Answer to `stats`. */
export interface PlayedStats {
  readonly connectedCount: number
  readonly publishedCount: number
  readonly deliveredCount: number
  readonly arrivedCount: number
  readonly isSendingDone: boolean
  /** Since the start, all threads. */
  readonly cpuUserUs: number
  readonly cpuSystemUs: number
}

/** Microseconds and how often each was recorded, ascending. */
export type Recorded = readonly (readonly [valueUs: number, count: number])[]

/** The counts of one thread. */
export interface PlayedTally {
  readonly perBackend: readonly {
    readonly backend: number
    readonly clientCount: number
    readonly publishedCount: number
    readonly deliveredCount: number
    readonly deliveredInWindowCount: number
    readonly duplicateCount: number
    readonly reorderedCount: number
    readonly unexpectedCount: number
    readonly latencyUs: Recorded
  }[]
  readonly expectedCount: number
  readonly publishedInWindowCount: number
  readonly acknowledgedCount: number
  readonly publishErrorCount: number
  readonly firstPublishError: string | null
  readonly gapCount: number
  readonly clientErrorCount: number
  readonly closedCount: number
  readonly firstClose: string | null
  readonly lastSendUs: number
  readonly lastArrivalUs: number
  readonly sendLagUs: Recorded
  readonly wakeLagUs: Recorded
  readonly utilization: number
}
